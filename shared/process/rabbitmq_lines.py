"""RabbitMQ away is one line, and one when it is back, however many threads of this process notice."""

import logging
import threading
import time
import traceback
from collections import deque
from typing import Final

from windlass.shared.errors import words_of

LOGGER: Final = "rabbitmq"
"""Whoever is connected tells it at INFO, whoever is not at WARNING, with its own name as `connection`."""

CONSUMERS: Final = "dramatiq.worker.ConsumerThread("


class RabbitmqLines(logging.Filter):
    """Of all that connections say about themselves, lets through what is news: the first that is lost, and the last
    that is back. Between those two every try of every consumer would be a line."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._away: set[str] = set()
        self._since = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name == LOGGER:
            connection = str(getattr(record, "connection", ""))
            reason = record.getMessage() if record.levelno >= logging.WARNING else None
        elif record.name.startswith(CONSUMERS) and (reason := _lost(record)) is not None:
            connection = record.name.removeprefix(CONSUMERS).removesuffix(")")
        else:
            return True
        return self._lose(record, connection, reason) if reason is not None else self._find(record, connection)

    def _lose(self, record: logging.LogRecord, connection: str, reason: str) -> bool:
        with self._lock:
            is_news = not self._away
            self._away.add(connection)
            if is_news:
                self._since = time.monotonic()
        told = f"no connection to RabbitMQ ({reason}); trying again until there is one"
        return is_news and _say(record, logging.WARNING, told)

    def _find(self, record: logging.LogRecord, connection: str) -> bool:
        with self._lock:
            is_news = self._away == {connection}
            self._away.discard(connection)
        told = f"connected to RabbitMQ again, after {time.monotonic() - self._since:.0f} s"
        return is_news and _say(record, logging.INFO, told)


def _lost(record: logging.LogRecord) -> str | None:
    """What a consumer of Dramatiq says of its connection; an error of another kind is none of this."""
    if record.levelno < logging.CRITICAL:
        return None
    error = record.exc_info[1] if record.exc_info else None
    if error is None:
        return record.getMessage().removeprefix("Consumer encountered a connection error: ")
    return words_of(error) if is_of_connection(error) else None


def is_of_connection(error: BaseException) -> bool:
    """Whether it is about the connection. One that is lost at a bad moment comes out of the client as whatever its own
    state has led it to, an IndexError for one: what was raised within it counts."""
    raised_by = deque(traceback.walk_tb(error.__traceback__), maxlen=1)
    within = {frame.f_globals.get("__name__", "") for frame, _ in raised_by} | {type(error).__module__}
    return isinstance(error, OSError) or any(name.partition(".")[0] == "pika" for name in within)


def _say(record: logging.LogRecord, level: int, text: str) -> bool:
    record.name, record.levelno, record.levelname = LOGGER, level, logging.getLevelName(level)
    record.msg, record.args, record.exc_info, record.exc_text = text, (), None, None
    return True

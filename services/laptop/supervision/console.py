"""Whole lines from many processes on one terminal, none of which can hold up or break the supervisor."""

import itertools
import os
import queue
import select
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Final

OWN_NAME: Final = "windlass"
COLOURS: Final = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)
WAITING_LINES: Final = 10_000


class Console:
    """Log lines go to one descriptor, announcements (the ready line) to another.

    A thread of its own does the writing: a terminal that somebody paused must stop the display, not the
    supervisor. A reader that went away (`make up | head`) costs the lines, nothing else.
    """

    def __init__(self, log_fd: int, announce_fd: int, names: Iterable[str]) -> None:
        self._log_fd = log_fd
        self._announce_fd = announce_fd
        self._prefixes = dict(_prefixes(names, coloured=os.isatty(log_fd)))
        self._waiting: queue.Queue[tuple[int, bytes] | None] = queue.Queue(WAITING_LINES)
        self._left_out = 0
        self._writer = threading.Thread(target=self._write_all, name="console", daemon=True)
        self._writer.start()

    def line(self, name: str, text: str) -> None:
        prefix = self._prefixes.get(name, f"{name} | ")
        self._put(self._log_fd, f"{prefix}{text}\n")

    def say(self, text: str) -> None:
        """A line of the supervisor's own."""
        self.line(OWN_NAME, f"{time.strftime('%H:%M:%S')} {text}")

    def announce(self, text: str) -> None:
        self._put(self._announce_fd, f"{text}\n")

    def close(self, seconds: float = 2) -> None:
        """Writes what still waits, if anybody reads it."""
        try:
            self._waiting.put(None, timeout=seconds)
        except queue.Full:
            return
        self._writer.join(seconds)

    def _put(self, fd: int, text: str) -> None:
        try:
            self._waiting.put_nowait((fd, text.encode(errors="replace")))
        except queue.Full:
            self._left_out += 1

    def _write_all(self) -> None:
        unread: set[int] = set()
        while (entry := self._waiting.get()) is not None:
            fd, text = entry
            if self._left_out:
                text += f"… {self._left_out} lines left out: nobody was reading\n".encode()
                self._left_out = 0
            if fd not in unread and not _write(fd, text):
                unread.add(fd)


def _prefixes(names: Iterable[str], *, coloured: bool) -> Iterator[tuple[str, str]]:
    everyone = [OWN_NAME, *names]
    width = max(map(len, everyone))
    for name, colour in zip(everyone, itertools.cycle(COLOURS), strict=False):
        prefix = f"{name:<{width}} | "
        yield name, f"\x1b[{colour}m{prefix}\x1b[0m" if coloured else prefix


def _write(fd: int, text: bytes) -> bool:
    """Writes everything, or says that nobody reads any more."""
    while text:
        try:
            text = text[os.write(fd, text) :]
        except BlockingIOError:
            select.select([], [fd], [])
        except OSError:
            return False
    return True

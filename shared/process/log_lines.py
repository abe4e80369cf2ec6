"""How a log line is written: readable for people, one JSON object for machines, and with no secret in either."""

import json
import logging
import re
import traceback
from datetime import UTC, datetime
from typing import Any

from windlass.shared import scrubbing, tracing
from windlass.shared.process import log_context

LONGEST_TEXT = 20_000
"""Of a message or a stack trace, its beginning and its end are kept."""

CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""What moves a cursor, ends a line for some reader, or turns the direction of what follows."""

UNREADABLE = "(a message that cannot be put into words)"


class TextLines(logging.Formatter):
    """The whole line, its stack trace included, whoever wrote it."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is the library's
        """Names the task or the request that it is about, unless the message does."""
        line = _harmless(super().formatMessage(record))
        known = log_context.facts()
        named = ((name, str(known[name])) for name in ("task_id", "request_id") if name in known)
        told = "".join(f" [{name}={value}]" for name, value in named if value not in record.message)
        return line + _harmless(told)

    def format(self, record: logging.LogRecord) -> str:
        """What follows the first line, a stack trace, stands further in: none of it can be taken for a line of ours."""
        first, *others = scrubbing.scrub(super().format(record)).split("\n")
        return "\n".join((first, *(f"  {_harmless(other)}" for other in others)))


class JsonLines(logging.Formatter):
    """One object, on one line whatever the message holds; what is not known is left out."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "service": self._service,
            "logger": record.name,
            "message": _fitting(_message(record)),
            **_of_subject(),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = _error(record.exc_info[1])
        # Written in ASCII: no character is left that some reader takes for the end of a line. DEL is the one control
        # character that JSON lets stand.
        return json.dumps(line, separators=(",", ":")).replace("\x7f", "\\u007f")


def _harmless(text: str) -> str:
    """As Python writes it in a string: agents and clients have a say in what we log, and none in what a log is."""
    return CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _message(record: logging.LogRecord) -> str:
    try:
        message = record.getMessage()
    except Exception:  # noqa: BLE001 - whatever an argument does when it is asked for its text: the line is written
        message = f"{record.msg!s} {UNREADABLE}" if isinstance(record.msg, str) else UNREADABLE
    return f"{message}\n{record.stack_info}" if record.stack_info else message


def _of_subject() -> dict[str, Any]:
    known = log_context.facts()
    found: dict[str, Any] = {
        name: value if isinstance(value, int) else _fitting(str(value))
        for name, value in known.items()
        if name != "traceparent" and value is not None
    }
    if (ids := tracing.ids() or tracing.ids_of(known.get("traceparent"))) is not None:
        found["trace_id"], found["span_id"] = ids
    return found


def _error(error: BaseException) -> dict[str, str]:
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - as above
        message = UNREADABLE
    stack = "".join(traceback.format_exception(error))
    return {"type": type(error).__name__, "message": _fitting(message), "stack": _fitting(stack)}


def _fitting(text: str) -> str:
    """Scrubbed before it is cut: half a secret is not recognised. Half a character is written as Python names it."""
    text = scrubbing.scrub(text).encode(errors="backslashreplace").decode()
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    return f"{text[:half]} … {len(text) - 2 * half} characters left out … {text[-half:]}"

"""Lines that an agent prints about its work rather than as its work: `{"progress": …}` and `{"usage": …}`."""

import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

HINT: Final = re.compile(r'^[ \t]*\{\s*"(?:progress|usage)"', re.MULTILINE)
"""Nearly no line is one, so a whole stretch of them is looked at at once."""

WHOLE: Final = 100
LONGEST_MESSAGE: Final = 500


@dataclass(frozen=True)
class Progress:
    """How far it is; what it leaves out stays as it was said last."""

    percent: float | None
    message: str | None


@dataclass(frozen=True)
class Usage:
    """What something has cost, in the agent's own figures: one line for each call, which are added up."""

    figures: dict[str, Any]


def without_remarks(text: str, hear: Callable[[Progress | Usage], None]) -> str:
    """The lines that are output; the others are heard."""
    if HINT.search(text) is None:
        return text
    kept = []
    for line in io.StringIO(text):  # by newlines alone, as the hint
        if (remark := remark_in(line)) is None:
            kept.append(line)
        else:
            hear(remark)
    return "".join(kept)


def remark_in(line: str) -> Progress | Usage | None:
    """A line that is nearly one is output like any other, where its author will see it."""
    if HINT.match(line) is None:
        return None
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if len(said) != 1 or not isinstance(below := next(iter(said.values())), dict):
        return None
    return Usage(below) if "usage" in said else _progress(below)


def _progress(said: dict[str, Any]) -> Progress | None:
    percent, message = said.get("percent"), said.get("message")
    is_number = isinstance(percent, int | float) and not isinstance(percent, bool) and 0 <= percent <= WHOLE
    if said.keys() - {"percent", "message"} or not (percent is None or is_number):
        return None
    if message is None:
        return Progress(percent, None)
    return Progress(percent, message[:LONGEST_MESSAGE]) if isinstance(message, str) else None

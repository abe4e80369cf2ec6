"""What an agent prints: lines that stream on as they come, and the last JSON object among them, in bounded memory."""

import codecs
import json
from collections.abc import Callable
from typing import Any, Final, Never

from windlass.shared.errors import ResultTooLarge

LONGEST_LINE: Final = 16_384
"""A line without end is passed on in pieces of this many characters."""

STDERR_BYTES: Final = 8_192
PARSED_AT_MOST: Final = 4
TRIED_AT_MOST: Final = 200
"""Text made of beginnings of JSON is not read over and over: so many times the whole, and so many of them, at most."""


class Tail:
    """The last bytes of a stream, however long it is."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._kept = bytearray()
        self.cut_off = False

    def add(self, chunk: bytes) -> None:
        self._kept += chunk
        # Cut now and then rather than at every chunk: each cut copies what stays.
        if len(self._kept) > 2 * self._most_bytes:
            self._cut()

    def text(self) -> str:
        if len(self._kept) > self._most_bytes:
            self._cut()
        return storable(self._kept.decode(errors="replace"))

    def _cut(self) -> None:
        del self._kept[: len(self._kept) - self._most_bytes]
        self.cut_off = True


class Output:
    """Takes stdout and stderr as they are read; `say` is told every whole line of stdout."""

    def __init__(self, say: Callable[[str], None], *, largest_result_bytes: int) -> None:
        self._say = say
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._unfinished = ""
        self._largest_result_bytes = largest_result_bytes
        self._stdout = Tail(largest_result_bytes)
        self._stderr = Tail(STDERR_BYTES)

    def take_stdout(self, chunk: bytes) -> None:
        self._stdout.add(chunk)
        text = self._unfinished + storable(self._decoder.decode(chunk))
        lines, newline, self._unfinished = text.rpartition("\n")
        if newline:
            self._say(lines + newline)
        if len(self._unfinished) > LONGEST_LINE:
            self._say(self._unfinished)
            self._unfinished = ""

    def take_stderr(self, chunk: bytes) -> None:
        self._stderr.add(chunk)

    def finish(self) -> None:
        """Nothing more will come."""
        rest = self._unfinished + storable(self._decoder.decode(b"", final=True))
        self._unfinished = ""
        if rest:
            self._say(rest)

    def stderr(self) -> str:
        return self._stderr.text()

    def last_object(self) -> dict[str, Any] | None:
        found = last_object_in(text := self._stdout.text())
        if found is None and self._stdout.cut_off and text.rstrip().endswith("}"):
            most = self._largest_result_bytes
            message = f"the JSON object that the agent printed last has more than the {most:,} bytes that can be kept"
            raise ResultTooLarge(message, limit_bytes=most)
        return found

    def as_result(self) -> dict[str, Any]:
        """For an agent that printed no JSON object: what it printed, or the end of it. Each character may take several
        times its size as JSON."""
        text = self._stdout.text()
        most = self._largest_result_bytes // 8
        if len(text) <= most and not self._stdout.cut_off:
            return {"stdout": text}
        return {"stdout": text[-most:], "stdout_cut_off": True}


def storable(text: str) -> str:
    """Postgres keeps no NUL in a text."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def last_object_in(text: str) -> dict[str, Any] | None:
    """The last JSON object that begins a line, on one line or, made readable, on many; whatever comes after it."""
    decoder = json.JSONDecoder(parse_constant=_refuse)
    patience = PARSED_AT_MOST * len(text) + LONGEST_LINE
    end = len(text)
    for _ in range(TRIED_AT_MOST):
        if patience <= 0 or end < 0:
            return None
        start = text.rfind("\n{", 0, end) + 1
        if start == 0 and not text.startswith("{"):
            return None
        end = start - 1
        try:
            found, _ = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            patience -= error.pos - start + 1
        except (RecursionError, ValueError):
            patience -= LONGEST_LINE
        else:
            return found if isinstance(found, dict) else None
    return None


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is no JSON")

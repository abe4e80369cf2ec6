"""What an agent prints: lines that stream on as they come, and the last JSON object among them, in bounded memory."""

import json
from typing import Any, Final, Never

from windlass.services.actors.agent.remarks import Progress, Usage, without_remarks
from windlass.services.actors.subprocess.lines import LONGEST_LINE, Lines
from windlass.services.actors.subprocess.tail import STDERR_BYTES, Tail
from windlass.services.actors.worker.context.context import Context
from windlass.shared.errors import ResultTooDeep, ResultTooLarge

PARSED_AT_MOST: Final = 4
TRIED_AT_MOST: Final = 200
"""Text made of beginnings of JSON is not read over and over: so many times the whole, and so many of them, at most."""


class Output:
    """Takes stdout and stderr as they are read: their lines are the attempt's output, but for remarks about the work.

    Of stdout what is no remark is also what the result is looked for in.
    """

    def __init__(self, context: Context, *, largest_result_bytes: int) -> None:
        self._context = context
        self._largest_result_bytes = largest_result_bytes
        self._stdout = Tail(largest_result_bytes)
        self._stderr = Tail(STDERR_BYTES)
        self._lines = Lines(self._say)
        self._stderr_lines = Lines(lambda text: context.output(text, stream="stderr"))
        self._told = Progress(None, "Processing")

    def take_stdout(self, chunk: bytes) -> None:
        self._lines.take(chunk)

    def take_stderr(self, chunk: bytes) -> None:
        self._stderr.add(chunk)
        self._stderr_lines.take(chunk)

    def finish(self) -> None:
        """Nothing more will come."""
        self._lines.finish()
        self._stderr_lines.finish()

    def _say(self, text: str) -> None:
        if said := without_remarks(text, self._hear):
            self._stdout.add(said.encode())
            self._context.output(said)

    def _hear(self, remark: Progress | Usage) -> None:
        if isinstance(remark, Usage):
            self._context.report("usage", figures=remark.figures)
        else:
            percent = self._told.percent if remark.percent is None else remark.percent
            message = self._told.message if remark.message is None else remark.message
            self._told = Progress(percent, message)
            self._context.progress(message or "Processing", percent=percent)

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
        except RecursionError:
            raise ResultTooDeep("the JSON object that the agent printed last is nested too deep to be read") from None
        except ValueError:
            patience -= LONGEST_LINE
        else:
            return found if isinstance(found, dict) else None
    return None


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is no JSON")

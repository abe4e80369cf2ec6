"""A socket that nobody closed is found when its memory is collected, in the middle of some other test. One that our own
code opened fails that test, and says where that was; one that a library or a test forgot is closed in silence."""

import itertools
import socket
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

PROJECT = Path(__file__).parents[2]
OURS = tuple(f"{PROJECT / room}/" for room in ("services", "shared", "windlass"))
NEAREST = 12
_openers: dict[int, str] = {}
"""Where those of ours were opened that are open, by the socket's own number in memory."""


def watch() -> None:
    begin = socket.socket.__init__

    def begin_and_remember(self: socket.socket, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **options)
        _openers.pop(id(self), None)
        if any(place.startswith(OURS) for place in _callers(sys._getframe(1))):
            _openers[id(self)] = " <- ".join(itertools.islice(_callers(sys._getframe(1)), NEAREST))

    def end(self: socket.socket) -> None:
        if self.fileno() == -1:
            return
        opener = _openers.pop(id(self), None)
        self.close()
        if opener is not None:
            warnings.warn(f"unclosed {self!r}, opened at {opener}", ResourceWarning, stacklevel=2)

    socket.socket.__init__ = begin_and_remember  # type: ignore[method-assign]
    socket.socket.__del__ = end  # type: ignore[attr-defined]


def _callers(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        yield f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back

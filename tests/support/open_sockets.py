"""A socket that nobody closed is found when its memory is collected, in the middle of some other test: it says itself
where it was opened."""

import socket
import traceback
from typing import Any

CALLERS = 12
_opened: dict[int, str] = {}


def tell_where_they_were_opened() -> None:
    begin, describe = socket.socket.__init__, socket.socket.__repr__

    def begin_and_remember(self: socket.socket, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **options)
        _opened[id(self)] = " <- ".join(
            f"{frame.filename}:{frame.lineno}" for frame in reversed(traceback.extract_stack(limit=CALLERS)[:-1])
        )

    def describe_with_origin(self: object) -> str:
        return f"{describe(self)} opened at {_opened.get(id(self))}"

    socket.socket.__init__ = begin_and_remember  # type: ignore[method-assign]
    socket.socket.__repr__ = describe_with_origin  # type: ignore[method-assign]

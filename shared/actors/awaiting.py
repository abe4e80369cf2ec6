"""Forgotten `await`s, found where they do harm: an error names the line that has to change."""

import itertools
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from inspect import isawaitable
from pathlib import Path
from typing import Any, TypeVar

from windlass.shared.errors import NotAwaited

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Coroutine[Any, Any, Any]])

MOST_LOOKED_AT = 10_000
"""Values of a document: a larger one is not searched to its end."""


def remember_where_coroutines_are_made() -> None:
    """On the calling thread, from now on: costs a tenth of a microsecond for each coroutine."""
    sys.set_coroutine_origin_tracking_depth(1)


@contextmanager
def coroutines_remembered() -> Iterator[None]:
    """The same until the end of the block, for a thread that is not a worker's."""
    before = sys.get_coroutine_origin_tracking_depth()
    sys.set_coroutine_origin_tracking_depth(max(before, 1))
    try:
        yield
    finally:
        sys.set_coroutine_origin_tracking_depth(before)


def refuse_awaitables(value: Any, what: str) -> None:
    """Raises NotAwaited if there is something in `value` that should have been awaited."""
    found = list(_awaitables_in(value))
    for _, each in found:
        if isinstance(each, Coroutine):
            each.close()
    for pointer, each in found:
        where = f"{what} at {pointer}" if pointer else what
        raise NotAwaited(f"{_place_of(each)}`await` is missing: {where} is not a value but {_name_of(each)}")


def awaited(function: F) -> F:
    """Marks a plain function as one whose result is a coroutine."""
    function.is_awaited = True  # type: ignore[attr-defined]
    return function


class Expected:
    """Coroutines that a context has handed out and that have not begun yet."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._made: dict[int, tuple[Coroutine[Any, Any, Any], str]] = {}

    def expect(self, call: str, work: Callable[[], Awaitable[T]]) -> Coroutine[Any, Any, T]:
        """`work`, to be awaited by the caller's caller. It does not begin before."""
        number, caller = next(self._numbers), sys._getframe(2)  # noqa: SLF001 - no other way is fast enough
        made = self._begun(number, work)
        self._made[number] = made, f"{_place(caller.f_code.co_filename, caller.f_lineno)}`await` is missing: {call}"
        return made

    def check(self) -> None:
        """At the end of the actor's function. Raises NotAwaited for the first that has not begun."""
        forgotten = [said for _, said in self._made.values()]
        self.close()
        if forgotten:
            raise NotAwaited(f"{forgotten[0]} was never awaited, and did not run")

    def close(self) -> None:
        """Python would warn about each of them."""
        for made, _ in self._made.values():
            made.close()
        self._made.clear()

    async def _begun(self, number: int, work: Callable[[], Awaitable[T]]) -> T:
        self._made.pop(number, None)
        return await work()


def _awaitables_in(value: Any) -> Iterator[tuple[str, Any]]:
    waiting: list[tuple[str, Any]] = [("", value)]
    for pointer, each in itertools.islice(_walk(waiting), MOST_LOOKED_AT):
        if isawaitable(each):
            yield pointer, each


def _walk(waiting: list[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    while waiting:
        pointer, each = waiting.pop()
        yield pointer, each
        if isinstance(each, dict):
            waiting.extend((f"{pointer}/{name}", below) for name, below in each.items())
        elif isinstance(each, list | tuple | set | frozenset):
            waiting.extend((f"{pointer}/{number}", below) for number, below in enumerate(each))
        elif hasattr(each, "__dataclass_fields__"):
            waiting.extend((f"{pointer}/{name}", getattr(each, name, None)) for name in each.__dataclass_fields__)


def _name_of(awaitable: Any) -> str:
    name = getattr(awaitable, "__qualname__", None) or type(awaitable).__name__
    return f"the coroutine {name}(…)" if isinstance(awaitable, Coroutine) else f"something to await ({name})"


def _place_of(awaitable: Any) -> str:
    """Where it was made; where its function is defined, if that is all that is known."""
    if origin := getattr(awaitable, "cr_origin", None):
        return _place(*origin[0][:2])
    code = getattr(awaitable, "cr_code", None)
    return "" if code is None else f"{_place(code.co_filename, code.co_firstlineno)}(its definition) "


def _place(filename: str, line: int) -> str:
    return f"{Path(filename).name}:{line}: "

"""Durable steps: what one came to is committed before the attempt goes on, and a later attempt is given it."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from windlass.shared.actors import step_rules
from windlass.shared.actors.step_rules import Call, StepBook, inside


class Attempt(Protocol):
    """Whose steps they are."""

    @property
    def attempt(self) -> int: ...
    def check(self) -> None: ...
    def stop(self, reason: Any) -> None: ...


class Kept(Protocol):
    """Where steps are kept; false where the attempt may keep nothing any more."""

    def earlier(self) -> dict[str, Any]: ...
    async def earlier_async(self) -> dict[str, Any]: ...
    def keep(self, name: str, written: bytes, elapsed_ms: int) -> bool: ...
    async def keep_async(self, name: str, written: bytes, elapsed_ms: int) -> bool: ...
    def given_back(self) -> None: ...


class Steps:
    """One attempt's, made when it asks for its first.

    A task's first attempt finds nothing, and does not look: steps are written by attempts alone, and their numbers only
    grow, over revivals, too.
    """

    def __init__(self, context: Attempt, kept: Kept) -> None:
        self._context = context
        self._kept = kept
        self._book = StepBook()
        self._earlier: dict[str, Any] | None = {} if context.attempt == 1 else None
        self._loading = threading.Lock()
        self._loading_on_the_loop = asyncio.Lock()

    def run(self, name: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """In a `def` actor, on its thread."""
        name = self._book.begin(name)
        step_rules.refuse_async(name, function)
        self._context.check()
        with self._loading:
            if self._earlier is None:
                self._learn(self._kept.earlier())
        call = Call(name, function, arguments)
        if self._is_finished(name):
            return self._given(name, call)
        began = time.monotonic()
        with inside(name):
            result = step_rules.refuse_awaitable(name, function(*arguments, **options))
        written = self._book.fit(name, result)
        answer = call.result(written, result)
        # Kept before anybody asks whether to stop: the work is done, and may have been paid for.
        if not self._kept.keep(name, written, _since(began)):
            self._context.stop("lost")
        self._context.check()
        return answer

    async def run_async(
        self, name: str, function: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any, **options: Any
    ) -> Any:
        """The same in an `async def` actor: it holds up nobody on its loop."""
        name = self._book.begin(name)
        step_rules.refuse_plain(name, function)
        self._context.check()
        async with self._loading_on_the_loop:
            if self._earlier is None:
                self._learn(await self._kept.earlier_async())
        call = Call(name, function, arguments)
        if self._is_finished(name):
            return self._given(name, call)
        began = time.monotonic()
        with inside(name):
            result = await function(*arguments, **options)
        written = self._book.fit(name, result)
        answer = call.result(written, result)
        if not await self._kept.keep_async(name, written, _since(began)):
            self._context.stop("lost")
        self._context.check()
        return answer

    def _learn(self, earlier: dict[str, Any]) -> None:
        self._earlier = earlier
        self._book.remember(earlier)

    def _is_finished(self, name: str) -> bool:
        return self._earlier is not None and name in self._earlier

    def _given(self, name: str, call: Call) -> Any:
        assert self._earlier is not None
        self._kept.given_back()
        return call.stored(self._earlier[name])


def _since(began: float) -> int:
    return round((time.monotonic() - began) * 1000)

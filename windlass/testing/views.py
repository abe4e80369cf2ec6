"""The context as the function under test is given it: plainly or to be awaited, with accidents where they were asked
for."""

import functools
from collections.abc import Callable, Coroutine
from typing import Any

from windlass.shared.actors.attempt.core import Core
from windlass.shared.actors.attempt.faces import AwaitedContext
from windlass.shared.actors.awaiting import awaited
from windlass.shared.actors.step_rules import is_async


class Crashed(BaseException):
    """The worker was killed here. Nothing runs in a process that is dead: whoever catches this is still dead."""


class Accidents:
    """What is to happen in one attempt, and where."""

    def __init__(self) -> None:
        self.at_once: list[Callable[[], None]] = []
        self.after: dict[str, list[Callable[[], None]]] = {}
        self.inside: set[str] = set()
        self.is_dead = False

    def check(self) -> None:
        if self.is_dead:
            raise Crashed

    def crash(self) -> None:
        self.is_dead = True
        raise Crashed

    def reached(self, step: str) -> None:
        for happen in self.after.pop(step, ()):
            happen()

    def cut_off(self, step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose worker dies when it has returned and nobody knows yet."""
        if step not in self.inside:
            return function
        if is_async(function):

            async def awaited(*arguments: Any, **options: Any) -> None:
                await function(*arguments, **options)
                self.crash()

            return functools.wraps(function)(awaited)

        def plain(*arguments: Any, **options: Any) -> None:
            function(*arguments, **options)
            self.crash()

        return plain


class View:
    """In a `def` function; what is not here is the attempt's own."""

    def __init__(self, context: Any, accidents: Accidents) -> None:
        self._context = context
        self._accidents = accidents

    def __getattr__(self, name: str) -> Any:
        self._accidents.check()
        return getattr(self._context, name)

    def step(self, name: str, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        self._accidents.check()
        result = self._context.step(name, self._accidents.cut_off(name, function), *arguments, **options)
        self._accidents.reached(name)
        self.check()
        return result


class AsyncView(AwaitedContext):
    """In an `async def` function."""

    def __init__(self, context: Any, accidents: Accidents) -> None:
        super().__init__(context)
        self._accidents = accidents

    def __getattr__(self, name: str) -> Any:
        self._accidents.check()
        return super().__getattr__(name)

    @property
    def core(self) -> Core:
        self._accidents.check()
        return super().core

    @awaited
    def step(self, name: str, fn: Callable[..., Any], /, *arguments: Any, **options: Any) -> Coroutine[Any, Any, Any]:
        return self.expected.expect(f"context.step({name!r}, …)", lambda: self._step(name, fn, *arguments, **options))

    async def _step(self, name: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        result = await self.core.step(name, self._accidents.cut_off(name, function), *arguments, **options)
        self._accidents.reached(name)
        self.check()
        return result

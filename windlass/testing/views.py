"""The context as the function under test is given it: plainly or to be awaited, with accidents where they were asked
for."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from windlass.shared.actors.awaiting import Expected, awaited
from windlass.shared.actors.step_rules import is_async

T = TypeVar("T")
Awaited = Coroutine[Any, Any, T]


class Crashed(BaseException):
    """The worker was killed here. Nothing runs in a process that is dead: whoever catches this is still dead."""


class Accidents:
    """What is to happen in one attempt, and where."""

    def __init__(self) -> None:
        self.at_once: list[Callable[[], None]] = []
        self.after: dict[str, list[Callable[[], None]]] = {}
        self.inside: set[str] = set()
        self.is_dead = False

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
        if self._accidents.is_dead:
            raise Crashed
        return getattr(self._context, name)

    def step(self, name: str, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        result = self.steps.run(name, self._accidents.cut_off(name, function), *arguments, **options)
        self._accidents.reached(name)
        self.check()
        return result


class AsyncView(View):
    """In an `async def` function."""

    def __init__(self, context: Any, accidents: Accidents) -> None:
        super().__init__(context, accidents)
        self.expected = Expected()

    @awaited
    def step(self, name: str, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Awaited[Any]:
        return self.expected.expect(
            f"context.step({name!r}, …)", lambda: self._step(name, function, *arguments, **options)
        )

    async def _step(self, name: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        result = await self.steps.run_async(name, self._accidents.cut_off(name, function), *arguments, **options)
        self._accidents.reached(name)
        self.check()
        return result

    @awaited
    def sleep(self, seconds: float) -> Awaited[None]:
        asleep = functools.partial(asyncio.to_thread, self.__getattr__("sleep"), seconds)
        return self.expected.expect(f"context.sleep({seconds!r})", asleep)

    @awaited
    def rate(self) -> Awaited[None]:
        return self.expected.expect("context.rate()", functools.partial(asyncio.to_thread, self.__getattr__("rate")))

    @awaited
    def submit(self, actor: Any, payload: Any = None, /, **options: Any) -> Awaited[str]:
        return self.expected.expect("context.submit(…)", lambda: self.children.submit_async(actor, payload, options))

    @awaited
    def store_file(self, data: Any, /, *, media_type: str | None = None) -> Awaited[str]:
        return self.expected.expect("context.store_file(…)", lambda: self.files.store_async(data, media_type))

"""What an actor is given beside its payload: who it works for, a way to report, and a way to learn that it should stop.

`Context` is the annotation for both kinds. In an `async def` actor whatever waits is awaited (`sleep`, `step`,
`submit`, `store_file`, `rate`); in a `def` actor the same names return plainly. `AsyncContext` says so to a type
checker in all places, for those who want it to.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from logging import Logger, LoggerAdapter
from types import NoneType, UnionType
from typing import Any, ParamSpec, Protocol, TypeVar, Union, get_args, get_origin, overload
from uuid import UUID

P = ParamSpec("P")
T = TypeVar("T")


class _Reporting(Protocol):
    """What waits for nothing, and is the same in both."""

    @property
    def task_id(self) -> UUID: ...

    @property
    def attempt(self) -> int:
        """From 1 on."""

    @property
    def user_id(self) -> str:
        """Who has submitted the task."""

    @property
    def checkpoint(self) -> Any:
        """What an earlier attempt saved last."""

    @property
    def deadline(self) -> float:
        """When the attempt's time is up, by `time.monotonic()`."""

    @property
    def log(self) -> "Logger | LoggerAdapter[Logger]":
        """Its lines say which task and attempt they are about."""

    def progress(self, message: str, *, percent: float | None = None) -> None:
        """Says how far it is; only the latest word of every fraction of a second is kept."""

    def output(self, text: str, *, stream: str | None = None) -> None:
        """Streams text to whoever watches."""

    def save(self, checkpoint: Any) -> None:
        """Keeps something that a later attempt can go on from."""

    def check(self) -> None:
        """Raises when the attempt should end; an actor that works in pieces calls it between them."""

    def usage(
        self,
        *,
        cost_usd: float | None = None,
        prompt_tokens: int | None = None,
        completion_tokens: int | None = None,
    ) -> None:
        """Says what something has cost: added up over the attempts."""


class Context(_Reporting, Protocol):
    """One attempt at a task, seen from inside."""

    @overload
    def step(
        self, name: str, fn: Callable[P, Awaitable[T]], /, *arguments: P.args, **options: P.kwargs
    ) -> Coroutine[Any, Any, T]: ...
    @overload
    def step(self, name: str, fn: Callable[P, T], /, *arguments: P.args, **options: P.kwargs) -> T: ...
    def step(self, name: str, fn: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        """Calls `fn` and stores its result before it returns. A later attempt gets the stored result instead of a
        call. Both get it as the type that `fn` is annotated with."""

    def sleep(self, seconds: float) -> Any:
        """Waits, unless the attempt is told to stop or its time is up."""

    def rate(self) -> Any:
        """Takes a place in the provider's rate: before each call but the first, whose place is the claim's."""

    def submit(self, actor: Any, payload: Mapping[str, Any] | None = None, /, **options: Any) -> Any:
        """Makes a child of this task, once over all attempts."""

    def store_file(self, data: Any, /, **options: Any) -> Any:
        """Keeps a file, and gives its `content_id`."""


class AsyncContext(_Reporting, Protocol):
    """The same in an `async def` actor, where whatever waits is awaited."""

    def step(
        self, name: str, fn: Callable[P, Awaitable[T]], /, *arguments: P.args, **options: P.kwargs
    ) -> Coroutine[Any, Any, T]:
        """Calls `fn` and stores its result before it returns. A later attempt gets the stored result instead of a
        call. Both get it as the type that `fn` is annotated with."""

    def sleep(self, seconds: float) -> Coroutine[Any, Any, None]:
        """Waits, unless the attempt is told to stop or its time is up."""

    def rate(self) -> Coroutine[Any, Any, None]:
        """Takes a place in the provider's rate: before each call but the first, whose place is the claim's."""

    def submit(
        self, actor: Any, payload: Mapping[str, Any] | None = None, /, **options: Any
    ) -> Coroutine[Any, Any, Any]:
        """Makes a child of this task, once over all attempts."""

    def store_file(self, data: Any, /, **options: Any) -> Coroutine[Any, Any, Any]:
        """Keeps a file, and gives its `content_id`."""


def is_context(annotation: object) -> bool:
    """Whether a parameter of this kind is given the context, be it `Context | None`; what comes with Windlass names the
    worker's own."""
    if get_origin(annotation) in {Union, UnionType}:
        said = [each for each in get_args(annotation) if each is not NoneType]
        return len(said) == 1 and is_context(said[0])
    return annotation in (Context, AsyncContext) or bool(getattr(annotation, "is_given_to_actors", False))

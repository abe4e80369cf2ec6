"""`send`, `send_with_options` and `s`: an actor is submitted by itself, or made a part of a workflow."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

if TYPE_CHECKING:
    from windlass.client.declared import Declared
    from windlass.client.task import Task
    from windlass.client.workflows.composing import Chain, Composition, Signature

if TYPE_CHECKING:
    from typing_extensions import ParamSpec as ParamSpecWithDefault

    F = ParamSpecWithDefault("F", default=...)
    """The parameters that a payload fills. `...`, which takes all, where a type checker cannot know them."""
else:
    F = ParamSpec("F")

P = ParamSpec("P")
R = TypeVar("R")
Returned = TypeVar("Returned")


class Sending(ABC, Generic[P, R, F]):
    """What an actor has for those who submit it. The client is imported when something is sent: a worker needs none."""

    name: str

    @property
    @abstractmethod
    def called(self) -> Callable[..., Any]: ...

    @property
    @abstractmethod
    def fields(self) -> tuple[str, ...]: ...

    @abstractmethod
    def __call__(self, *arguments: P.args, **options: P.kwargs) -> R: ...

    @overload
    def send(
        self: "Sending[P, Coroutine[Any, Any, Returned], F]", *arguments: F.args, **fields: F.kwargs
    ) -> "Task[Returned]": ...
    @overload
    def send(self, *arguments: F.args, **fields: F.kwargs) -> "Task[R]": ...
    def send(self, *arguments: Any, **fields: Any) -> Any:
        """Submits the call, `translate.send(text="hi")`, and returns the task, stored for good.

        Where it goes is said by WINDLASS_URL and WINDLASS_API_KEY, else by the `windlass up` that runs on this
        directory. Inside an actor say `context.submit`, which makes a child once however many attempts there are.
        """
        return self.send_with_options(args=arguments, kwargs=fields)

    @overload
    def send_with_options(
        self: "Sending[P, Coroutine[Any, Any, Returned], F]",
        *,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> "Task[Returned]": ...
    @overload
    def send_with_options(
        self, *, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> "Task[R]": ...
    def send_with_options(
        self, *, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None, **options: Any
    ) -> Any:
        """The same with the options of `POST /tasks`: `translate.send_with_options(kwargs={"text": "hi"}, priority=1)`,
        or, with the fields among the options, `translate.send_with_options(text="hi", priority=1)`."""
        from windlass.client.declared import fields_of_a_call  # noqa: PLC0415 - see above
        from windlass.client.default import default_client  # noqa: PLC0415

        payload = fields_of_a_call(self, args, kwargs or {}) if args or kwargs is not None else None
        client: Any = default_client()
        return client.submit(self, payload, **options)

    def s(self, *arguments: Any, **fields: Any) -> "Signature":
        """The call as a task to be, for a workflow: `translate.s(text="hi") | polish.s(to="de")`. Whoever comes next
        gets its result in the first field that it needs and was not given; `.set(…)` adds options."""
        from windlass.client.declared import fields_of_a_call  # noqa: PLC0415 - see above
        from windlass.client.workflows.composing import signature  # noqa: PLC0415

        return signature(self, fields_of_a_call(self, arguments, fields))

    def __or__(self, other: "Composition | Declared[Any]") -> "Chain":
        return self.s() | other

"""How both clients submit: an actor by its name, or one that is declared, whose result is then known by its type."""

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack, overload

from windlass.client import calls
from windlass.client.call import Call
from windlass.client.declared import asked_for, with_its_result
from windlass.client.errors import TaskCancelled, TaskDead
from windlass.client.options import NewTask, SubmitOptions, TaskId
from windlass.client.task import SubmittedTask, Task

if TYPE_CHECKING:
    from windlass.actors.sending import Sending

T = TypeVar("T")
R = TypeVar("R")
F = ParamSpec("F")

Fields = Mapping[str, Any]


class Submitting(ABC):
    @abstractmethod
    def perform(self, call: Call[T]) -> T: ...

    @abstractmethod
    def wait(self, task_id: TaskId, *, timeout: float | None = None) -> Task: ...

    @overload
    def submit(
        self,
        actor: str,
        payload: Fields | None = None,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[SubmitOptions],
    ) -> Task: ...
    @overload
    def submit(
        self, actor: "Sending[..., Coroutine[Any, Any, R], F]", /, *arguments: F.args, **fields: F.kwargs
    ) -> Task[R]: ...
    @overload
    def submit(self, actor: "Sending[..., R, F]", /, *arguments: F.args, **fields: F.kwargs) -> Task[R]: ...
    @overload
    def submit(
        self,
        actor: "Sending[..., Coroutine[Any, Any, R], ...]",
        payload: Fields,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[SubmitOptions],
    ) -> Task[R]: ...
    @overload
    def submit(
        self,
        actor: "Sending[..., R, ...]",
        payload: Fields,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[SubmitOptions],
    ) -> Task[R]: ...
    def submit(  # type: ignore[misc] # a field may be called as one of its own parameters is
        self, actor: Any, *arguments: Any, idempotency_key: str | None = None, **options: Any
    ) -> Task:
        """The task, stored for good. Repeated by itself until that is certain, and stored once however often.

        `submit("translate", {"text": "hi"}, priority=1)`, or with the actor itself `submit(translate, text="hi")` and
        `submit(translate, {"text": "hi"}, priority=1)`. Options may stand among the fields, too, but a type checker
        that knows the fields refuses them there.
        """
        name, whole, given = asked_for(actor, arguments, options, idempotency_key=idempotency_key)
        return with_its_result(actor, self.perform(calls.submit(name, whole, idempotency_key, given)))

    def submit_many(self, tasks: Iterable[NewTask], *, idempotency_key: str | None = None) -> tuple[SubmittedTask, ...]:
        """Any number of tasks, by the thousand; each thousand is accepted whole or not at all."""
        return tuple(
            task for batch in calls.submit_batches(tasks, idempotency_key) for task in self.perform(batch).tasks
        )

    @overload
    def run(
        self,
        actor: str,
        payload: Fields | None = None,
        *,
        timeout: float | None = None,
        idempotency_key: str | None = None,
        **options: Unpack[SubmitOptions],
    ) -> Task: ...
    @overload
    def run(
        self, actor: "Sending[..., Coroutine[Any, Any, R], F]", /, *arguments: F.args, **fields: F.kwargs
    ) -> Task[R]: ...
    @overload
    def run(self, actor: "Sending[..., R, F]", /, *arguments: F.args, **fields: F.kwargs) -> Task[R]: ...
    @overload
    def run(
        self,
        actor: "Sending[..., Coroutine[Any, Any, R], ...]",
        payload: Fields,
        *,
        timeout: float | None = None,
        idempotency_key: str | None = None,
        **options: Unpack[SubmitOptions],
    ) -> Task[R]: ...
    @overload
    def run(
        self,
        actor: "Sending[..., R, ...]",
        payload: Fields,
        *,
        timeout: float | None = None,
        idempotency_key: str | None = None,
        **options: Unpack[SubmitOptions],
    ) -> Task[R]: ...
    @overload
    def run(
        self, actor: "Sending[..., Coroutine[Any, Any, R], ...]", /, *, timeout: float, **fields: Any
    ) -> Task[R]: ...
    @overload
    def run(self, actor: "Sending[..., R, ...]", /, *, timeout: float, **fields: Any) -> Task[R]: ...
    def run(  # type: ignore[misc] # a field may be called as one of its own parameters is
        self,
        actor: Any,
        *arguments: Any,
        timeout: float | None = None,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> Task:
        """Submits and waits: the completed task, or TaskDead or TaskCancelled."""
        name, whole, given = asked_for(actor, arguments, options, timeout=timeout, idempotency_key=idempotency_key)
        task = self.perform(calls.submit(name, whole, idempotency_key, given))
        return with_its_result(actor, completed(self.wait(task.task_id, timeout=timeout)))


class AsyncSubmitting(ABC):
    @abstractmethod
    async def perform(self, call: Call[T]) -> T: ...

    @abstractmethod
    async def wait(self, task_id: TaskId, *, timeout: float | None = None) -> Task: ...

    @overload
    async def submit(
        self,
        actor: str,
        payload: Fields | None = None,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[SubmitOptions],
    ) -> Task: ...
    @overload
    async def submit(
        self, actor: "Sending[..., Coroutine[Any, Any, R], F]", /, *arguments: F.args, **fields: F.kwargs
    ) -> Task[R]: ...
    @overload
    async def submit(self, actor: "Sending[..., R, F]", /, *arguments: F.args, **fields: F.kwargs) -> Task[R]: ...
    @overload
    async def submit(
        self,
        actor: "Sending[..., Coroutine[Any, Any, R], ...]",
        payload: Fields,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[SubmitOptions],
    ) -> Task[R]: ...
    @overload
    async def submit(
        self,
        actor: "Sending[..., R, ...]",
        payload: Fields,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[SubmitOptions],
    ) -> Task[R]: ...
    async def submit(  # type: ignore[misc] # a field may be called as one of its own parameters is
        self, actor: Any, *arguments: Any, idempotency_key: str | None = None, **options: Any
    ) -> Task:
        """The task, stored for good. Repeated by itself until that is certain, and stored once however often.

        `submit("translate", {"text": "hi"}, priority=1)`, or with the actor itself `submit(translate, text="hi")` and
        `submit(translate, {"text": "hi"}, priority=1)`. Options may stand among the fields, too, but a type checker
        that knows the fields refuses them there.
        """
        name, whole, given = asked_for(actor, arguments, options, idempotency_key=idempotency_key)
        return with_its_result(actor, await self.perform(calls.submit(name, whole, idempotency_key, given)))

    async def submit_many(
        self, tasks: Iterable[NewTask], *, idempotency_key: str | None = None
    ) -> tuple[SubmittedTask, ...]:
        """Any number of tasks, by the thousand; each thousand is accepted whole or not at all."""
        submitted: list[SubmittedTask] = []
        for batch in calls.submit_batches(tasks, idempotency_key):
            submitted += (await self.perform(batch)).tasks
        return tuple(submitted)

    @overload
    async def run(
        self,
        actor: str,
        payload: Fields | None = None,
        *,
        timeout: float | None = None,
        idempotency_key: str | None = None,
        **options: Unpack[SubmitOptions],
    ) -> Task: ...
    @overload
    async def run(
        self, actor: "Sending[..., Coroutine[Any, Any, R], F]", /, *arguments: F.args, **fields: F.kwargs
    ) -> Task[R]: ...
    @overload
    async def run(self, actor: "Sending[..., R, F]", /, *arguments: F.args, **fields: F.kwargs) -> Task[R]: ...
    @overload
    async def run(
        self,
        actor: "Sending[..., Coroutine[Any, Any, R], ...]",
        payload: Fields,
        *,
        timeout: float | None = None,
        idempotency_key: str | None = None,
        **options: Unpack[SubmitOptions],
    ) -> Task[R]: ...
    @overload
    async def run(
        self,
        actor: "Sending[..., R, ...]",
        payload: Fields,
        *,
        timeout: float | None = None,
        idempotency_key: str | None = None,
        **options: Unpack[SubmitOptions],
    ) -> Task[R]: ...
    @overload
    async def run(
        self, actor: "Sending[..., Coroutine[Any, Any, R], ...]", /, *, timeout: float, **fields: Any
    ) -> Task[R]: ...
    @overload
    async def run(self, actor: "Sending[..., R, ...]", /, *, timeout: float, **fields: Any) -> Task[R]: ...
    async def run(  # type: ignore[misc] # a field may be called as one of its own parameters is
        self,
        actor: Any,
        *arguments: Any,
        timeout: float | None = None,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> Task:
        """Submits and waits: the completed task, or TaskDead or TaskCancelled."""
        name, whole, given = asked_for(actor, arguments, options, timeout=timeout, idempotency_key=idempotency_key)
        task = await self.perform(calls.submit(name, whole, idempotency_key, given))
        return with_its_result(actor, completed(await self.wait(task.task_id, timeout=timeout)))


def completed(task: Task) -> Task:
    """The task, if it has completed."""
    if task.status == "dead":
        raise TaskDead(task)
    if task.status == "cancelled":
        raise TaskCancelled(task)
    return task

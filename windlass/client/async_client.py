"""The client for asyncio; what is said in which order stands in `conversation.py` and `reading.py`."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any, Literal, Self, TypeVar, Unpack

import httpx

from windlass.client import calls, conversation
from windlass.client.call import Call, next_page
from windlass.client.conversation import Conversation, Outcome, Patience, Step
from windlass.client.errors import ApiError, Unreachable
from windlass.client.media import Generation
from windlass.client.memory import calls as memory_calls
from windlass.client.memory.async_memory import AsyncMemory
from windlass.client.memory.documents import Figures, Grouping
from windlass.client.memory.options import Day
from windlass.client.operations import (
    ActorDescription,
    AuditEntry,
    Bulk,
    BulkStarted,
    ErrorGroup,
    ForgottenActor,
    Health,
    Key,
    NewKey,
    Provider,
    Queues,
    Worker,
)
from windlass.client.options import Filter, ProviderChange, Role, TaskId, Watched
from windlass.client.projects.async_projects import AsyncProjects
from windlass.client.reading import (
    SILENCE_SECONDS,
    Connections,
    M,
    ManyReading,
    OnInterruption,
    OnResumption,
    Reading,
)
from windlass.client.schedules.async_schedules import AsyncSchedules
from windlass.client.stream_events import StreamEvent, StreamMessage, TaskEvent, typed, typed_of_a_task
from windlass.client.submitting import AsyncSubmitting
from windlass.client.sync_client import PATIENCE_SECONDS, TIMEOUT_SECONDS
from windlass.client.target import Target, answer
from windlass.client.task import Event, Listing, StreamToken, Task, Why
from windlass.client.webhooks.async_webhooks import AsyncWebhooks
from windlass.client.workflows.async_workflows import AsyncApprovals, AsyncWorkflows
from windlass.client.workflows.building import AsyncWorkflowBuilder
from windlass.client.workflows.options import WorkflowHead

T = TypeVar("T")


class AsyncClient(AsyncSubmitting):
    """Speaks to one Windlass, as `Client` does, with `await`.

    `url` and `key` default to WINDLASS_URL and WINDLASS_API_KEY, else to the `windlass up` that runs on this
    directory; `timeout` is for one answer. While the API cannot be reached or says 503, whatever is safe to repeat is
    repeated until `patience` seconds have passed without a success.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = TIMEOUT_SECONDS,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._target = Target.choose(url, key, timeout)
        self.patience = patience
        self._http = httpx.AsyncClient(**self._target.settings())
        self.projects = AsyncProjects(self)
        self.workflows = AsyncWorkflows(self)
        self.schedules = AsyncSchedules(self)
        self.approvals = AsyncApprovals(self)
        self.webhooks = AsyncWebhooks(self)
        self.memory = AsyncMemory(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def wait(self, task_id: TaskId, *, timeout: float | None = None) -> Task:
        """The task when it has ended, in whatever way; WaitTimeout when it has not in time."""
        return await self.hold(conversation.wait(task_id, timeout, self.patience))

    async def stream(
        self,
        task_id: TaskId,
        *,
        after: int = 0,
        on_interruption: OnInterruption | None = None,
        on_resumption: OnResumption | None = None,
    ) -> AsyncGenerator[StreamEvent, None]:
        """The task's events from the first one after `after` to its end, over as many connections as it takes.

        `on_interruption` hears of each connection that was lost or could not be made (None: the server closed it),
        `on_resumption` when the stream goes on.
        """
        messages = self.messages(task_id, after=after, on_interruption=on_interruption, on_resumption=on_resumption)
        async with contextlib.aclosing(messages):  # a reader that leaves early leaves no connection behind
            async for message in messages:
                if (event := typed(message)) is not None:
                    yield event

    async def messages(
        self,
        task_id: TaskId,
        *,
        after: int = 0,
        on_interruption: OnInterruption | None = None,
        on_resumption: OnResumption | None = None,
    ) -> AsyncGenerator[StreamMessage, None]:
        """The same as `stream`, as the API sent it."""
        reading = Reading(task_id, after, self.patience)
        async with contextlib.aclosing(self.follow(reading, on_interruption, on_resumption)) as messages:
            async for message in messages:
                yield message

    async def stream_many(
        self,
        *,
        after: str | None = None,
        on_interruption: OnInterruption | None = None,
        on_resumption: OnResumption | None = None,
        **watched: Unpack[Watched],
    ) -> AsyncGenerator[TaskEvent, None]:
        """What happens to many tasks from now on, or from where a `cursor` says; it has no end, and resumes as
        `stream` does."""
        reading = ManyReading(watched, after, self.patience)
        async with contextlib.aclosing(self.follow(reading, on_interruption, on_resumption)) as messages:
            async for message in messages:
                if (event := typed_of_a_task(message)) is not None:
                    yield event

    async def follow(
        self, reading: Connections[M], on_interruption: OnInterruption | None, on_resumption: OnResumption | None
    ) -> AsyncGenerator[M, None]:
        while not reading.is_over():
            trouble: Unreachable | ApiError | None = None
            try:
                wire = self._target.wire(reading.request(), read_seconds=SILENCE_SECONDS)
                async with self._http.stream(**wire) as response:
                    if response.status_code == 200:
                        if reading.opened(response.headers.get("content-type", "")) and on_resumption:
                            on_resumption()
                        async for chunk in response.aiter_bytes():
                            for message in reading.feed(chunk):
                                yield message
                            if reading.is_over():
                                return
                    else:
                        await response.aread()
                        trouble = reading.refused(answer(response))
            except httpx.RequestError as error:
                trouble = self._target.unreachable(error)
            if not reading.is_over():
                pause = reading.interrupted(trouble)
                if on_interruption:
                    on_interruption(trouble)
                await asyncio.sleep(pause)

    async def get(self, task_id: TaskId) -> Task:
        return await self.perform(calls.get(task_id))

    def workflow(self, name: str, **head: Unpack[WorkflowHead]) -> AsyncWorkflowBuilder:
        """A workflow to be written task by task, in an `async with` block at whose end it is submitted."""
        return AsyncWorkflowBuilder(self, name, **head)

    def list(self, *, full: bool = False, page_size: int = 200, **filters: Unpack[Filter]) -> AsyncIterator[Task]:
        """Tasks, newest first, page after page; `full` adds payload, result and the errors of all attempts."""
        return self.items_of(calls.list_tasks(filters, page_size, full=full))

    def events(self, task_id: TaskId, *, after: int = 0, types: Sequence[str] = ()) -> AsyncIterator[Event]:
        """The task's history so far, oldest first."""
        return self.items_of(calls.events(task_id, after, types))

    def workflow_run_media(self, workflow_run_id: str, *, page_size: int = 200) -> AsyncIterator[Generation]:
        """What was generated in a workflow run, newest first, each with its files."""
        return self.items_of(calls.workflow_run_media(workflow_run_id, page_size))

    async def media(self, content_id: str) -> bytes:
        """A file, whole; `content_ids` of a result and `Content` name it."""
        return await self.perform(calls.media(content_id))

    async def stream_token(self, task_id: TaskId) -> StreamToken:
        """For a browser, whose EventSource can send no key."""
        return await self.perform(calls.stream_token(task_id))

    async def why(self, task_id: TaskId) -> Why:
        """Why it is not running."""
        return await self.perform(calls.why(task_id))

    async def cancel(self, task_id: TaskId) -> Task:
        """Cancelled at once, or, while it runs, when its work has stopped: `wait` for that."""
        return await self.perform(calls.cancel(task_id))

    async def retry(self, task_id: TaskId) -> Task:
        """A new life for a dead or cancelled task."""
        return await self.perform(calls.retry(task_id))

    async def bulk(
        self, action: Literal["retry", "cancel"], chosen: Filter, *, everything: bool = False, dry_run: bool = False
    ) -> BulkStarted:
        """Retries or cancels all tasks that match, in the background; an empty filter needs `everything`."""
        return await self.perform(calls.bulk(action, chosen, everything=everything, dry_run=dry_run))

    async def bulk_progress(self, bulk_id: str) -> Bulk:
        return await self.perform(calls.bulk_progress(bulk_id))

    async def queues(self) -> Queues:
        return await self.perform(calls.queues())

    def dlq(self, *, page_size: int = 200, **filters: Unpack[Filter]) -> AsyncIterator[Task]:
        """Dead tasks, with payload, error and attempts."""
        return self.items_of(calls.dlq(filters, page_size))

    async def dlq_groups(self, **filters: Unpack[Filter]) -> tuple[ErrorGroup, ...]:
        """Dead tasks, counted by what they died of."""
        return (await self.perform(calls.dlq_groups(filters))).items

    async def revive(self, chosen: Filter, *, everything: bool = False, canary: int | None = None) -> BulkStarted:
        """Retries the dead tasks that match; with `canary`, the rest only when that many have succeeded."""
        return await self.perform(calls.revive(chosen, everything=everything, canary=canary))

    async def providers(self) -> tuple[Provider, ...]:
        return (await self.perform(calls.providers())).items

    async def provider(self, name: str) -> Provider:
        return await self.perform(calls.provider(name))

    async def set_provider(self, name: str, **change: Unpack[ProviderChange]) -> Provider:
        """In force everywhere within a second; None goes back to the configured value."""
        return await self.perform(calls.set_provider(name, change))

    async def set_every_provider(self, *, paused: bool, reason: str | None = None) -> tuple[Provider, ...]:
        """Pauses all of them, or lets all go on."""
        return (await self.perform(calls.set_every_provider(paused=paused, reason=reason))).items

    async def drain_worker(self, worker_id: str, *, reason: str | None = None) -> Worker:
        """It takes nothing new, finishes or hands back what it runs, and goes."""
        return await self.perform(calls.drain_worker(worker_id, reason))

    async def workers(self) -> tuple[Worker, ...]:
        return (await self.perform(calls.workers())).items

    async def actors(self) -> tuple[ActorDescription, ...]:
        """The kinds of work that there are."""
        return (await self.perform(calls.actors())).items

    async def actor(self, name: str) -> ActorDescription:
        """What it takes, who may be asked for it, and which versions of it are at work."""
        return await self.perform(calls.actor(name))

    async def forget_actor(self, name: str) -> ForgottenActor:
        """Removes an actor that no configuration names any more, with its queues and providers. Its tasks stay."""
        return await self.perform(calls.forget_actor(name))

    async def keys(self) -> tuple[Key, ...]:
        return tuple([key async for key in self.items_of(calls.keys())])

    async def create_key(
        self, role: Role, user_id: str, *, name: str | None = None, expires_in_seconds: float | None = None
    ) -> NewKey:
        """The only time that the whole key is shown."""
        return await self.perform(calls.create_key(role, user_id, name, expires_in_seconds))

    async def delete_key(self, key_id: str) -> Key:
        """Revokes it."""
        return await self.perform(calls.delete_key(key_id))

    def audit(self, *, page_size: int = 200) -> AsyncIterator[AuditEntry]:
        """What operators did, newest first."""
        return self.items_of(calls.audit(page_size))

    async def stats(
        self,
        *,
        first: Day | None = None,
        last: Day | None = None,
        days: int | None = None,
        group_by: Sequence[Grouping] = ("actor",),
    ) -> tuple[Figures, ...]:
        """What became of each day's tasks, how long they took and what they cost, the latest day first: thirty days up
        to `last` or today, or so many `days`, or from `first` on."""
        return (await self.perform(memory_calls.stats(first, last, days, group_by))).items

    async def health(self) -> Health:
        return await self.perform(calls.health())

    async def perform(self, call: Call[T]) -> T:
        return call.read(await self.ask(call))

    async def ask(self, call: Call[Any]) -> Any:
        """The JSON document that answers a call."""
        return await self.hold(conversation.ask(call, Patience(self.patience)))

    async def items_of(self, call: Call[Listing[T]]) -> AsyncIterator[T]:
        page_after: Call[Listing[T]] | None = call
        while page_after is not None:
            page = await self.perform(page_after)
            for item in page.items:
                yield item
            page_after = next_page(page_after, page)

    async def hold(self, held: Conversation[T]) -> T:
        """Carries out what the conversation wants, step by step."""
        outcome: Outcome = None
        while True:
            try:
                step = held.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            outcome = await self._do(step)

    async def _do(self, step: Step) -> Outcome:
        if isinstance(step, conversation.Pause):
            await asyncio.sleep(step.seconds)
            return None
        try:
            return answer(await self._http.request(**self._target.wire(step)))
        except httpx.RequestError as error:
            return self._target.unreachable(error)

"""The client for programs that wait for their answers."""

import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any, Final, Literal, Self, TypeVar, Unpack

import httpx

from windlass.client import calls, conversation
from windlass.client.call import Call, next_page
from windlass.client.conversation import Conversation, Outcome, Patience, Step
from windlass.client.errors import ApiError, Unreachable
from windlass.client.media import Generation
from windlass.client.memory import calls as memory_calls
from windlass.client.memory.documents import Figures, Grouping
from windlass.client.memory.options import Day
from windlass.client.memory.sync_memory import Memory
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
from windlass.client.projects.sync_projects import Projects
from windlass.client.reading import (
    SILENCE_SECONDS,
    Connections,
    M,
    ManyReading,
    OnInterruption,
    OnResumption,
    Reading,
)
from windlass.client.schedules.sync_schedules import Schedules
from windlass.client.stream_events import StreamEvent, StreamMessage, TaskEvent, typed, typed_of_a_task
from windlass.client.submitting import Submitting
from windlass.client.target import Target, answer
from windlass.client.task import Event, Listing, StreamToken, Task, Why
from windlass.client.webhooks.sync_webhooks import Webhooks
from windlass.client.workflows.building import WorkflowBuilder
from windlass.client.workflows.options import WorkflowHead
from windlass.client.workflows.sync_workflows import Approvals, Workflows

T = TypeVar("T")

TIMEOUT_SECONDS: Final = 30.0
PATIENCE_SECONDS: Final = 60.0


class Client(Submitting):
    """Speaks to one Windlass.

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
        self._http = httpx.Client(**self._target.settings())
        self.projects = Projects(self)
        self.workflows = Workflows(self)
        self.schedules = Schedules(self)
        self.approvals = Approvals(self)
        self.webhooks = Webhooks(self)
        self.memory = Memory(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def wait(self, task_id: TaskId, *, timeout: float | None = None) -> Task:
        """The task when it has ended, in whatever way; WaitTimeout when it has not in time."""
        return self.hold(conversation.wait(task_id, timeout, self.patience))

    def stream(
        self,
        task_id: TaskId,
        *,
        after: int = 0,
        on_interruption: OnInterruption | None = None,
        on_resumption: OnResumption | None = None,
    ) -> Generator[StreamEvent, None, None]:
        """The task's events from the first one after `after` to its end, over as many connections as it takes.

        `on_interruption` hears of each connection that was lost or could not be made (None: the server closed it),
        `on_resumption` when the stream goes on.
        """
        for message in self.messages(
            task_id, after=after, on_interruption=on_interruption, on_resumption=on_resumption
        ):
            if (event := typed(message)) is not None:
                yield event

    def messages(
        self,
        task_id: TaskId,
        *,
        after: int = 0,
        on_interruption: OnInterruption | None = None,
        on_resumption: OnResumption | None = None,
    ) -> Generator[StreamMessage, None, None]:
        """The same as `stream`, as the API sent it."""
        return self.follow(Reading(task_id, after, self.patience), on_interruption, on_resumption)

    def stream_many(
        self,
        *,
        after: str | None = None,
        on_interruption: OnInterruption | None = None,
        on_resumption: OnResumption | None = None,
        **watched: Unpack[Watched],
    ) -> Generator[TaskEvent, None, None]:
        """What happens to many tasks from now on, or from where a `cursor` says; it has no end, and resumes as
        `stream` does."""
        reading = ManyReading(watched, after, self.patience)
        for message in self.follow(reading, on_interruption, on_resumption):
            if (event := typed_of_a_task(message)) is not None:
                yield event

    def follow(
        self, reading: Connections[M], on_interruption: OnInterruption | None, on_resumption: OnResumption | None
    ) -> Generator[M, None, None]:
        while not reading.is_over():
            trouble: Unreachable | ApiError | None = None
            try:
                wire = self._target.wire(reading.request(), read_seconds=SILENCE_SECONDS)
                with self._http.stream(**wire) as response:
                    if response.status_code == 200:
                        if reading.opened(response.headers.get("content-type", "")) and on_resumption:
                            on_resumption()
                        for chunk in response.iter_bytes():
                            yield from reading.feed(chunk)
                            if reading.is_over():
                                return
                    else:
                        response.read()
                        trouble = reading.refused(answer(response))
            except httpx.RequestError as error:
                trouble = self._target.unreachable(error)
            if not reading.is_over():
                pause = reading.interrupted(trouble)
                if on_interruption:
                    on_interruption(trouble)
                time.sleep(pause)

    def get(self, task_id: TaskId) -> Task:
        return self.perform(calls.get(task_id))

    def workflow(self, name: str, **head: Unpack[WorkflowHead]) -> WorkflowBuilder:
        """A workflow to be written task by task, in a `with` block at whose end it is submitted."""
        return WorkflowBuilder(self, name, **head)

    def list(self, *, full: bool = False, page_size: int = 200, **filters: Unpack[Filter]) -> Iterator[Task]:
        """Tasks, newest first, page after page; `full` adds payload, result and the errors of all attempts."""
        return self.items_of(calls.list_tasks(filters, page_size, full=full))

    def events(self, task_id: TaskId, *, after: int = 0, types: Sequence[str] = ()) -> Iterator[Event]:
        """The task's history so far, oldest first."""
        return self.items_of(calls.events(task_id, after, types))

    def workflow_run_media(self, workflow_run_id: str, *, page_size: int = 200) -> Iterator[Generation]:
        """What was generated in a workflow run, newest first, each with its files."""
        return self.items_of(calls.workflow_run_media(workflow_run_id, page_size))

    def media(self, content_id: str) -> bytes:
        """A file, whole; `content_ids` of a result and `Content` name it."""
        return self.perform(calls.media(content_id))

    def stream_token(self, task_id: TaskId) -> StreamToken:
        """For a browser, whose EventSource can send no key."""
        return self.perform(calls.stream_token(task_id))

    def why(self, task_id: TaskId) -> Why:
        """Why it is not running."""
        return self.perform(calls.why(task_id))

    def cancel(self, task_id: TaskId) -> Task:
        """Cancelled at once, or, while it runs, when its work has stopped: `wait` for that."""
        return self.perform(calls.cancel(task_id))

    def retry(self, task_id: TaskId) -> Task:
        """A new life for a dead or cancelled task."""
        return self.perform(calls.retry(task_id))

    def bulk(
        self, action: Literal["retry", "cancel"], chosen: Filter, *, everything: bool = False, dry_run: bool = False
    ) -> BulkStarted:
        """Retries or cancels all tasks that match, in the background; an empty filter needs `everything`."""
        return self.perform(calls.bulk(action, chosen, everything=everything, dry_run=dry_run))

    def bulk_progress(self, bulk_id: str) -> Bulk:
        return self.perform(calls.bulk_progress(bulk_id))

    def queues(self) -> Queues:
        return self.perform(calls.queues())

    def dlq(self, *, page_size: int = 200, **filters: Unpack[Filter]) -> Iterator[Task]:
        """Dead tasks, with payload, error and attempts."""
        return self.items_of(calls.dlq(filters, page_size))

    def dlq_groups(self, **filters: Unpack[Filter]) -> tuple[ErrorGroup, ...]:
        """Dead tasks, counted by what they died of."""
        return self.perform(calls.dlq_groups(filters)).items

    def revive(self, chosen: Filter, *, everything: bool = False, canary: int | None = None) -> BulkStarted:
        """Retries the dead tasks that match; with `canary`, the rest only when that many have succeeded."""
        return self.perform(calls.revive(chosen, everything=everything, canary=canary))

    def providers(self) -> tuple[Provider, ...]:
        return self.perform(calls.providers()).items

    def provider(self, name: str) -> Provider:
        return self.perform(calls.provider(name))

    def set_provider(self, name: str, **change: Unpack[ProviderChange]) -> Provider:
        """In force everywhere within a second; None goes back to the configured value."""
        return self.perform(calls.set_provider(name, change))

    def set_every_provider(self, *, paused: bool, reason: str | None = None) -> tuple[Provider, ...]:
        """Pauses all of them, or lets all go on."""
        return self.perform(calls.set_every_provider(paused=paused, reason=reason)).items

    def drain_worker(self, worker_id: str, *, reason: str | None = None) -> Worker:
        """It takes nothing new, finishes or hands back what it runs, and goes."""
        return self.perform(calls.drain_worker(worker_id, reason))

    def workers(self) -> tuple[Worker, ...]:
        return self.perform(calls.workers()).items

    def actors(self) -> tuple[ActorDescription, ...]:
        """The kinds of work that there are."""
        return self.perform(calls.actors()).items

    def actor(self, name: str) -> ActorDescription:
        """What it takes, who may be asked for it, and which versions of it are at work."""
        return self.perform(calls.actor(name))

    def forget_actor(self, name: str) -> ForgottenActor:
        """Removes an actor that no configuration names any more, with its queues and providers. Its tasks stay."""
        return self.perform(calls.forget_actor(name))

    def keys(self) -> tuple[Key, ...]:
        return tuple(self.items_of(calls.keys()))

    def create_key(
        self, role: Role, user_id: str, *, name: str | None = None, expires_in_seconds: float | None = None
    ) -> NewKey:
        """The only time that the whole key is shown."""
        return self.perform(calls.create_key(role, user_id, name, expires_in_seconds))

    def delete_key(self, key_id: str) -> Key:
        """Revokes it."""
        return self.perform(calls.delete_key(key_id))

    def audit(self, *, page_size: int = 200) -> Iterator[AuditEntry]:
        """What operators did, newest first."""
        return self.items_of(calls.audit(page_size))

    def stats(
        self,
        *,
        first: Day | None = None,
        last: Day | None = None,
        days: int | None = None,
        group_by: Sequence[Grouping] = ("actor",),
    ) -> tuple[Figures, ...]:
        """What became of each day's tasks, how long they took and what they cost, the latest day first: thirty days up
        to `last` or today, or so many `days`, or from `first` on."""
        return (self.perform(memory_calls.stats(first, last, days, group_by))).items

    def health(self) -> Health:
        return self.perform(calls.health())

    def perform(self, call: Call[T]) -> T:
        return call.read(self.ask(call))

    def ask(self, call: Call[Any]) -> Any:
        """The JSON document that answers a call."""
        return self.hold(conversation.ask(call, Patience(self.patience)))

    def items_of(self, call: Call[Listing[T]]) -> Iterator[T]:
        page_after: Call[Listing[T]] | None = call
        while page_after is not None:
            page = self.perform(page_after)
            yield from page.items
            page_after = next_page(page_after, page)

    def hold(self, held: Conversation[T]) -> T:
        """Carries out what the conversation wants, step by step."""
        outcome: Outcome = None
        while True:
            try:
                step = held.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            outcome = self._do(step)

    def _do(self, step: Step) -> Outcome:
        if isinstance(step, conversation.Pause):
            time.sleep(step.seconds)
            return None
        try:
            return answer(self._http.request(**self._target.wire(step)))
        except httpx.RequestError as error:
            return self._target.unreachable(error)

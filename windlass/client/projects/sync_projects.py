"""Projects for programs that wait for their answers."""

from collections.abc import Generator, Iterator, Sequence
from typing import Unpack

from windlass.client.projects import calls
from windlass.client.projects.documents import (
    BatchAnswer,
    ForceStopped,
    Item,
    ItemState,
    Mode,
    OnFailure,
    Project,
    ProjectEvent,
    ProjectQueue,
    ProjectRun,
    QueueState,
    Stopped,
)
from windlass.client.projects.options import ItemFields, ItemId, NewItem, ProjectChange, ProjectId
from windlass.client.projects.watching import QueueReading, WatchEvent, later, says_idle, stays_idle, typed
from windlass.client.reading import OnInterruption, OnResumption
from windlass.client.speaking import Speaker
from windlass.client.stream_events import StreamMessage


class Projects:
    """Backlogs, and run queues that can be stopped: `client.projects`."""

    def __init__(self, client: Speaker) -> None:
        self._client = client

    def create(
        self,
        name: str,
        *,
        defaults: ItemFields | None = None,
        on_failure: OnFailure = "stop",
        user_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Project:
        """A project with an empty backlog; `defaults` are what its items have in common. Repeated by itself
        until it is certain, and made once however often."""
        return self._client.perform(calls.create(name, defaults, on_failure, user_id, idempotency_key))

    def list(
        self,
        *,
        state: QueueState | Sequence[QueueState] = (),
        archived: bool = False,
        q: str | None = None,
        page_size: int = 200,
    ) -> Iterator[Project]:
        """Newest first, page after page; `q` is a part of the name, `archived` asks for those instead of the others."""
        states: Sequence[QueueState] = (state,) if isinstance(state, str) else state
        return self._client.items_of(calls.list_projects(states, archived=archived, q=q, page_size=page_size))

    def get(self, project_id: ProjectId) -> Project:
        return self._client.perform(calls.get(project_id))

    def change(self, project_id: ProjectId, **changes: Unpack[ProjectChange]) -> Project:
        """Items keep the defaults that they were written under."""
        return self._client.perform(calls.change(project_id, changes))

    def archive(self, project_id: ProjectId, *, reason: str | None = None) -> Project:
        """It is kept, and read, and nothing else."""
        return self._client.perform(calls.archive(project_id, reason))

    def add(self, project_id: ProjectId, *items: NewItem) -> tuple[Item, ...]:
        """Puts items at the end of the backlog, up to 1,000, all or none."""
        return self._client.perform(calls.add(project_id, items)).items

    def items(
        self, project_id: ProjectId, *, state: ItemState | Sequence[ItemState] = (), page_size: int = 200
    ) -> Iterator[Item]:
        """The backlog in its order, with what has been run."""
        states: Sequence[ItemState] = (state,) if isinstance(state, str) else state
        return self._client.items_of(calls.items(project_id, states, page_size))

    def item(self, project_id: ProjectId, item_id: ItemId) -> Item:
        return self._client.perform(calls.item(project_id, item_id))

    def change_item(self, project_id: ProjectId, item_id: ItemId, **fields: Unpack[NewItem]) -> Item:
        """What stands first is what runs, as long as no worker has claimed it."""
        return self._client.perform(calls.change_item(project_id, item_id, fields))

    def move(
        self, project_id: ProjectId, item_id: ItemId, *, before: ItemId | None = None, after: ItemId | None = None
    ) -> Item:
        """Before another item, or after it."""
        return self._client.perform(calls.move(project_id, item_id, before, after))

    def skip(self, project_id: ProjectId, item_id: ItemId, *, reason: str | None = None) -> Item:
        """It is passed over until somebody requeues it."""
        return self._client.perform(calls.skip(project_id, item_id, reason))

    def requeue(self, project_id: ProjectId, item_id: ItemId, *, reason: str | None = None) -> Item:
        """It waits again, where it stands."""
        return self._client.perform(calls.requeue(project_id, item_id, reason))

    def delete_item(self, project_id: ProjectId, item_id: ItemId) -> None:
        """Its runs and their tasks are kept."""
        self._client.perform(calls.delete_item(project_id, item_id))

    def run(
        self, project_id: ProjectId, *, mode: Mode = "single", item_id: ItemId | None = None, reason: str | None = None
    ) -> ProjectQueue:
        """Starts the first item that waits, or this one; in a loop the next ones follow by themselves.
        QueueAlreadyRunning if a run is open, BacklogEmpty if nothing waits."""
        return self._client.perform(calls.run(project_id, mode, item_id, reason))

    def stop(self, project_id: ProjectId, *, reason: str | None = None) -> Stopped:
        """What no worker has taken is withdrawn; what runs, ends; and nothing follows."""
        return self._client.perform(calls.stop(project_id, reason))

    def force_stop(
        self, project_id: ProjectId, *, wait: float = calls.PROOF_SECONDS, reason: str | None = None
    ) -> ForceStopped:
        """Cancels the run and all that came of it. `success` means proof that nothing of it lives; `wait` is how long
        to wait for that, and asking again is fine."""
        return self._client.perform(calls.force_stop(project_id, wait, reason))

    def status(self, project_id: ProjectId) -> ProjectQueue:
        return self._client.perform(calls.status(project_id))

    def events(self, project_id: ProjectId, *, after: int = 0) -> Iterator[ProjectEvent]:
        """Its history so far, oldest first."""
        return self._client.items_of(calls.events(project_id, after))

    def runs(self, project_id: ProjectId, *, page_size: int = 200) -> Iterator[ProjectRun]:
        """Newest first; one that was stopped by force has its receipt."""
        return self._client.items_of(calls.runs(project_id, page_size))

    def batch(
        self,
        action: calls.BatchAction,
        project_ids: Sequence[ProjectId],
        *,
        mode: Mode = "single",
        wait: float = calls.PROOF_SECONDS,
        reason: str | None = None,
    ) -> tuple[BatchAnswer, ...]:
        """The same for up to 100 projects, each with an answer of its own."""
        return self._client.perform(calls.batch(action, project_ids, mode, wait, reason)).items

    def watch(
        self,
        project_id: ProjectId,
        *,
        after: int | None = None,
        forever: bool = False,
        on_interruption: OnInterruption | None = None,
        on_resumption: OnResumption | None = None,
    ) -> Generator[WatchEvent, None, None]:
        """The present status, then everything that happens to the queue until it is idle, over as many connections as
        it takes; or from the first event after `after` on. `forever` goes on when it is idle, too."""
        for message in self.messages(
            project_id, after=after, forever=forever, on_interruption=on_interruption, on_resumption=on_resumption
        ):
            if (event := typed(message)) is not None:
                yield event

    def messages(
        self,
        project_id: ProjectId,
        *,
        after: int | None = None,
        forever: bool = False,
        on_interruption: OnInterruption | None = None,
        on_resumption: OnResumption | None = None,
    ) -> Generator[StreamMessage, None, None]:
        """The same as `watch`, as the API sent it."""
        if not forever and after is not None and self._is_over(project_id, after):
            return
        reading = QueueReading(project_id, after, self._client.patience)
        for message in self._client.follow(reading, on_interruption, on_resumption):
            yield message
            if not forever and says_idle(message) and stays_idle(self._client.perform(later(project_id, message.seq))):
                return

    def _is_over(self, project_id: ProjectId, after: int) -> bool:
        """Nothing would come any more: it is idle, and everything has been told."""
        return self.status(project_id).state == "idle" and not self._client.perform(later(project_id, after)).items

"""A project's stream: its events, one type for each name, over any number of connections, and when it is over."""

from typing import Final

from windlass.client.call import Call
from windlass.client.projects import calls
from windlass.client.projects.documents import ItemState, ProjectEvent, ProjectQueue, ProjectRun
from windlass.client.projects.options import ProjectId
from windlass.client.reading import Numbered
from windlass.client.stream_events import StreamMessage, one_of
from windlass.client.task import Document, Listing

BEGINS_ANEW: Final = frozenset({"start"})


class QueueEvent(ProjectQueue, frozen=True, kw_only=True):
    """What the queue does has changed; `type` is null for the present status, which comes first."""

    seq: int
    type: str | None = None


class RunEvent(ProjectRun, frozen=True, kw_only=True):
    """A run was opened, has ended, or was bound to another task."""

    seq: int
    type: str


class ItemEvent(Document, frozen=True, kw_only=True):
    """An item was added, changed, moved or deleted, or its run has ended."""

    seq: int
    type: str
    item_id: str
    state: ItemState
    position: str = ""
    title: str | None = None


WatchEvent = QueueEvent | RunEvent | ItemEvent

KINDS: Final[dict[str, type[WatchEvent]]] = {"status": QueueEvent, "run": RunEvent, "item": ItemEvent}


class QueueReading(Numbered):
    """It begins with the present status, or after `after`, and has no end of its own."""

    def __init__(self, project_id: ProjectId, after: int | None, patience_seconds: float) -> None:
        super().__init__(calls.stream_path(project_id), -1 if after is None else after, patience_seconds)

    def place(self) -> str:
        return "" if self._last < 0 else str(self._last)


def typed(message: StreamMessage) -> WatchEvent | None:
    return one_of(KINDS, message, message.seq, {"seq": message.seq})


def says_idle(message: StreamMessage) -> bool:
    return message.event == "status" and message.data.get("state") == "idle"


def later(project_id: ProjectId, seq: int) -> Call[Listing[ProjectEvent]]:
    return calls.events(project_id, after=seq, page_size=1000)


def stays_idle(since: Listing[ProjectEvent]) -> bool:
    """Whoever reads on from long ago meets ends that are past: nothing has started since this one."""
    return since.next_cursor is None and not any(event.type in BEGINS_ANEW for event in since.items)

"""A workflow's stream: itself on every change, and its tasks' progress, over any number of connections to its end."""

from collections.abc import Iterator
from typing import Final, Literal

from windlass.client.conversation import Conversation, read_json, wait_for
from windlass.client.errors import WorkflowTimeout
from windlass.client.reading import Connections
from windlass.client.stream_events import ENDS, ProgressEvent, StreamMessage, one_of
from windlass.client.workflows import calls
from windlass.client.workflows.documents import Workflow
from windlass.client.workflows.options import WorkflowId


class WorkflowMessage(StreamMessage, frozen=True, kw_only=True):
    """An event as it arrived; `cursor` brings a reader that comes back to where it was. `seq` is the workflow's own
    number, or that of the task's event."""

    cursor: str


class WorkflowEvent(Workflow, frozen=True, kw_only=True):
    """The workflow, whole, as it is now: first of all, then on every change. `event` is `workflow`, or says how it has
    ended."""

    cursor: str
    event: Literal["workflow", "complete", "error", "cancelled"]


class WorkflowProgress(ProgressEvent, frozen=True, kw_only=True):
    """The state or the progress of one of its tasks has changed."""

    cursor: str
    task_id: str
    key: str | None = None


WorkflowWatchEvent = WorkflowEvent | WorkflowProgress

KINDS: Final[dict[str, type[WorkflowWatchEvent]]] = {
    "progress": WorkflowProgress,
    **dict.fromkeys(("workflow", *ENDS), WorkflowEvent),
}


class WorkflowReading(Connections[WorkflowMessage]):
    """It begins with the workflow as it is, or after a `cursor`."""

    def __init__(self, workflow_id: WorkflowId, after: str | None, patience_seconds: float) -> None:
        super().__init__(calls.stream_path(workflow_id), patience_seconds)
        self._cursor = after or ""

    def place(self) -> str:
        return self._cursor

    def feed(self, chunk: bytes) -> Iterator[WorkflowMessage]:
        self._patience.renew()
        for message in self._parser.feed(chunk):
            cursor, data = message.id or "", read_json(message.data.encode())
            if cursor:
                self._cursor = cursor
            self._over = message.event in ENDS
            yield WorkflowMessage(seq=number_in(cursor, data), cursor=cursor, event=message.event, data=data)
            if self._over:
                return


def number_in(cursor: str, data: object) -> int:
    """The event's, where it says one; else the workflow's, with which the cursor ends."""
    said = data.get("seq") if isinstance(data, dict) else None
    last = cursor.rpartition(".")[2]
    return said if isinstance(said, int) else int(last) if last.isascii() and last.isdigit() else 0


def typed(message: WorkflowMessage) -> WorkflowWatchEvent | None:
    return one_of(KINDS, message, message.cursor, {"cursor": message.cursor, "event": message.event})


def wait(workflow_id: WorkflowId, timeout: float | None, patience_seconds: float) -> Conversation[Workflow]:
    """The workflow when nothing of it goes on by itself: at its end, or when it is escalated."""
    return wait_for(
        lambda seconds: calls.get(workflow_id, wait=seconds),
        lambda workflow: not workflow.goes_on,
        WorkflowTimeout,
        timeout,
        patience_seconds,
    )

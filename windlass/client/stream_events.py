"""The events of a task's stream, one type for each name that SPEC gives them."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from windlass.client.errors import UnreadableAnswer
from windlass.client.task import Document, Progress, Status, TaskError
from windlass.typed_json import convert

E = TypeVar("E")


class StreamMessage(Document, frozen=True, kw_only=True):
    """An event as it arrived: `data` is the JSON document as the API sent it."""

    seq: int
    event: str
    data: Any


class ProgressEvent(Document, frozen=True, kw_only=True):
    """The state or the progress has changed."""

    seq: int
    status: Status
    attempt: int
    progress: Progress = Progress()
    error: TaskError | None = None


class OutputEvent(Document, frozen=True, kw_only=True):
    """What the actor streams while it works; an earlier attempt's output is stale when `attempt` grows. Much text comes
    as several events, to be joined in their order."""

    seq: int
    attempt: int
    text: str | None = None
    data: Any = None
    stream: str | None = None
    """`stderr` where it came from there."""


class StepEvent(Document, frozen=True, kw_only=True):
    """A step has finished: a later attempt does not do it again."""

    seq: int
    attempt: int
    name: str
    elapsed_ms: int = 0


class CompleteEvent(Document, frozen=True, kw_only=True):
    """The end: the task has completed."""

    seq: int
    attempt: int
    result: Any = None


class ErrorEvent(Document, frozen=True, kw_only=True):
    """The end: the task is dead."""

    seq: int
    attempt: int
    error: TaskError | None = None


class CancelledEvent(Document, frozen=True, kw_only=True):
    """The end: the task was cancelled."""

    seq: int
    attempt: int


StreamEvent = ProgressEvent | OutputEvent | StepEvent | CompleteEvent | ErrorEvent | CancelledEvent

KINDS: Final[dict[str, type[StreamEvent]]] = {
    "progress": ProgressEvent,
    "output": OutputEvent,
    "step": StepEvent,
    "complete": CompleteEvent,
    "error": ErrorEvent,
    "cancelled": CancelledEvent,
}
ENDS: Final = frozenset({"complete", "error", "cancelled"})


class TaskEvent(Document, frozen=True, kw_only=True):
    """An event of one of many tasks; `cursor` brings a reader that comes back to where it was."""

    task_id: str
    cursor: str
    event: StreamEvent


class TaskMessage(StreamMessage, frozen=True, kw_only=True):
    """The same as it arrived."""

    task_id: str
    cursor: str


def typed(message: StreamMessage) -> StreamEvent | None:
    return one_of(KINDS, message, message.seq, {"seq": message.seq})


def one_of(kinds: Mapping[str, type[E]], message: StreamMessage, place: int | str, told: Mapping[str, Any]) -> E | None:
    """The message as its name's type, with what is told beside its data; `place` is what an error calls it by. None for
    a name that this version does not know: it comes from a newer api and is no end."""
    kind = kinds.get(message.event)
    if kind is None:
        return None
    try:
        return convert({**message.data, **told}, kind)
    except (msgspec.ValidationError, TypeError) as error:
        raise UnreadableAnswer(f"event {place} ({message.event}) is not as it should be: {error}") from error


def typed_of_a_task(message: TaskMessage) -> TaskEvent | None:
    event = typed(message)
    return None if event is None else TaskEvent(task_id=message.task_id, cursor=message.cursor, event=event)

"""Reading a stream over any number of connections, without a gap and without a repeat: one task's, or many tasks'."""

from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeVar

from windlass.client import calls
from windlass.client.call import Request, given
from windlass.client.conversation import Answer, Patience, read_json
from windlass.client.errors import ApiError, Unavailable, Unreachable, UnreadableAnswer
from windlass.client.options import TaskId, Watched
from windlass.client.problems import api_error
from windlass.client.sse import Parser
from windlass.client.stream_events import ENDS, StreamMessage, TaskMessage

SILENCE_SECONDS: Final = 45.0  # three of the server's pings


M = TypeVar("M", bound=StreamMessage)

OnInterruption = Callable[[Unreachable | ApiError | None], None]
OnResumption = Callable[[], None]


class Connections(Generic[M]):
    """One after the other, as often as it takes; each goes on where the one before has ended."""

    def __init__(self, path: str, patience_seconds: float) -> None:
        self._path = path
        self._patience = Patience(patience_seconds)
        self._parser = Parser()
        self._retry_seconds = 0.0
        self._interrupted = False
        self._over = False

    def is_over(self) -> bool:
        return self._over

    def request(self) -> Request:
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-cache"}
        if place := self.place():
            headers["Last-Event-ID"] = place
        return Request("GET", self._path, self.params(), headers)

    def place(self) -> str:
        """Where the next connection goes on; empty at the beginning."""
        raise NotImplementedError

    def params(self) -> dict[str, Any]:
        return {}

    def feed(self, chunk: bytes) -> Iterator[M]:
        raise NotImplementedError

    def opened(self, content_type: str) -> bool:
        """A connection carries events (200); whatever an earlier one left unfinished comes again. Is it a new one?"""
        if not content_type.startswith("text/event-stream"):
            raise UnreadableAnswer(f"the answer to GET {self._path} is no stream of events but {content_type!r}")
        self._parser = Parser()
        resumed, self._interrupted = self._interrupted, False
        return resumed

    def refused(self, answer: Answer) -> Unavailable | None:
        """Trouble that passes, or None at the end of the story (204); anything else is raised."""
        if answer.status == 204:
            self._over = True
            return None
        error = api_error(answer.status, answer.body, answer.retry_after)
        if isinstance(error, Unavailable):
            return error
        raise error

    def interrupted(self, trouble: Unreachable | ApiError | None) -> float:
        """How long to pause before the next connection: as long as the server asked its readers to."""
        if self._parser.retry_ms is not None:
            self._retry_seconds = self._parser.retry_ms / 1000
        self._interrupted = True
        closed = Unreachable("the server closed the stream before its end", sent=True)
        return self._patience.bear(trouble or closed, at_least=self._retry_seconds)


class Numbered(Connections[StreamMessage]):
    """A story whose events are numbered: the last `seq` that was given is where the next connection goes on."""

    ends: frozenset[str] = frozenset()

    def __init__(self, path: str, after: int, patience_seconds: float) -> None:
        super().__init__(path, patience_seconds)
        self._last = after

    def feed(self, chunk: bytes) -> Iterator[StreamMessage]:
        self._patience.renew()
        for message in self._parser.feed(chunk):
            seq = number_of(message.id)
            if seq <= self._last:
                continue
            self._last = seq
            self._over = message.event in self.ends
            yield StreamMessage(seq=seq, event=message.event, data=read_json(message.data.encode()))
            if self._over:
                return


class Reading(Numbered):
    """One task's story to its end."""

    ends = ENDS

    def __init__(self, task_id: TaskId, after: int, patience_seconds: float) -> None:
        super().__init__(calls.stream_path(task_id), after, patience_seconds)

    def place(self) -> str:
        return str(self._last) if self._last else ""


class ManyReading(Connections[TaskMessage]):
    """The stories of many tasks, without an end. The server names its place also where it has nothing to tell."""

    def __init__(self, watched: Watched, after: str | None, patience_seconds: float) -> None:
        super().__init__(calls.MANY_STREAM, patience_seconds)
        self._params = given(watched)
        self._cursor = after or ""

    def place(self) -> str:
        return self._cursor

    def params(self) -> dict[str, Any]:
        return self._params

    def feed(self, chunk: bytes) -> Iterator[TaskMessage]:
        self._patience.renew()
        for message in self._parser.feed(chunk):
            cursor, data = message.id or "", read_json(message.data.encode())
            self._cursor = cursor
            try:
                read = TaskMessage(
                    task_id=data["task_id"], seq=data["seq"], cursor=cursor, event=message.event, data=data
                )
            except (KeyError, TypeError):
                continue  # about no task: from a newer api
            yield read
        self._cursor = self._parser.place or self._cursor


def number_of(place: str | None) -> int:
    if place is None or not (place.isascii() and place.isdigit()):
        raise UnreadableAnswer(f"an event of the stream has no number: {place!r}")
    return int(place)

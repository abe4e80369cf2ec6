"""Reading one task's stream to its end over any number of connections, without a gap and without a repeat."""

from collections.abc import Iterator
from typing import Final

from windlass.client import calls
from windlass.client.call import Request
from windlass.client.conversation import Answer, Patience, read_json
from windlass.client.errors import ApiError, Unavailable, Unreachable, UnreadableAnswer, api_error
from windlass.client.options import TaskId
from windlass.client.sse import Parser
from windlass.client.stream_events import ENDS, StreamMessage

SILENCE_SECONDS: Final = 45.0  # three of the server's pings


class Reading:
    """Where the reader stands: the last `seq` that it was given is where the next connection goes on."""

    def __init__(self, task_id: TaskId, after: int, patience_seconds: float) -> None:
        self._path = calls.stream_path(task_id)
        self._last = after
        self._patience = Patience(patience_seconds)
        self._parser = Parser()
        self._retry_seconds = 0.0
        self._interrupted = False
        self._over = False

    def is_over(self) -> bool:
        return self._over

    def request(self) -> Request:
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-cache"}
        if self._last:
            headers["Last-Event-ID"] = str(self._last)
        return Request("GET", self._path, headers=headers)

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

    def feed(self, chunk: bytes) -> Iterator[StreamMessage]:
        self._patience.renew()
        for message in self._parser.feed(chunk):
            seq = self._seq(message.id)
            if seq <= self._last:
                continue
            self._last = seq
            self._over = message.event in ENDS
            yield StreamMessage(seq=seq, event=message.event, data=read_json(message.data.encode()))
            if self._over:
                return

    def interrupted(self, trouble: Unreachable | ApiError | None) -> float:
        """How long to pause before the next connection: as long as the server asked its readers to."""
        if self._parser.retry_ms is not None:
            self._retry_seconds = self._parser.retry_ms / 1000
        self._interrupted = True
        closed = Unreachable("the server closed the stream before its end", sent=True)
        return self._patience.bear(trouble or closed, at_least=self._retry_seconds)

    @staticmethod
    def _seq(number: str | None) -> int:
        if number is None or not (number.isascii() and number.isdigit()):
            raise UnreadableAnswer(f"an event of the stream has no number: {number!r}")
        return int(number)

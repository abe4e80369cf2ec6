"""A provider that counts: how many calls it has open, and when each one came and went.

A call is open from its connection to the answer, or to the death of the connection: what its caller believes meanwhile
does not matter. Work is asked for by `POST / {task_id, attempt, seconds}`.
"""

import json
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HUNG_UP = select.POLLRDHUP | select.POLLHUP | select.POLLERR


@dataclass(eq=False)
class Call:
    """One call as the provider saw it; `company` are the calls that were open when it came, itself among them."""

    connection: socket.socket
    came_at: float
    company: list["Call"] = field(default_factory=list)
    task_id: str | None = None
    attempt: int | None = None
    left_at: float | None = None
    answered: bool = False

    def hangs_up_within(self, seconds: float) -> bool:
        poll = select.poll()
        poll.register(self.connection, select.POLLRDHUP)
        return any(event & HUNG_UP for _, event in poll.poll(seconds * 1000))


class CountingProvider(ThreadingHTTPServer):
    """An HTTP server with a thread for each call."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Work)
        self.calls: list[Call] = []
        self._lock = threading.Lock()
        self._open: dict[int, Call] = {}

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    @property
    def most_at_once(self) -> int:
        return max((len(call.company) for call in self.calls), default=0)

    @property
    def open_calls(self) -> int:
        with self._lock:
            return len(self._open)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Counts the call as soon as it is accepted; who has hung up by then is gone, noticed or not."""
        with self._lock:
            for number, call in list(self._open.items()):
                if call.hangs_up_within(0):
                    self._leave(number, answered=False)
            call = Call(request, time.monotonic())
            self._open[id(request)] = call
            call.company = list(self._open.values())
            self.calls.append(call)
        super().process_request(request, client_address)

    def call_of(self, request: Any) -> Call:
        with self._lock:
            return self._open[id(request)]

    def leave(self, request: Any, *, answered: bool) -> None:
        with self._lock:
            self._leave(id(request), answered=answered)

    def _leave(self, number: int, *, answered: bool) -> None:
        call = self._open.pop(number, None)
        if call is not None:
            call.left_at, call.answered = time.monotonic(), answered

    def shutdown_request(self, request: Any) -> None:
        self.leave(request, answered=False)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that died in the middle of a sentence is what this is for."""


class Work(BaseHTTPRequestHandler):
    """One call: works for as long as it is asked to, unless the caller hangs up."""

    server: CountingProvider

    def do_POST(self) -> None:
        wanted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        call = self.server.call_of(self.request)
        call.task_id, call.attempt = wanted["task_id"], wanted["attempt"]
        if call.hangs_up_within(wanted["seconds"]):
            return
        # Left before the answer is given: whoever has it may free the slot, and the next one comes at once.
        self.server.leave(self.request, answered=True)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """The list of calls is the log."""


@contextmanager
def counting_provider() -> Iterator[CountingProvider]:
    with CountingProvider() as provider:
        thread = threading.Thread(target=provider.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield provider
        finally:
            provider.shutdown()
            thread.join()

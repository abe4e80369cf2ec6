"""Whoever waits for a provider's callbacks, as a test sees it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Heard:
    """One callback."""

    path: str
    authorization: str | None
    body: Any


class CallbackListener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Listening)
        self.heard: list[Heard] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Listening(BaseHTTPRequestHandler):
    server: CallbackListener

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.heard.append(Heard(self.path, self.headers["Authorization"], body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """What was heard is the log."""


@contextmanager
def callback_listener() -> Iterator[CallbackListener]:
    with CallbackListener() as listener:
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield listener
        finally:
            listener.shutdown()
            thread.join()

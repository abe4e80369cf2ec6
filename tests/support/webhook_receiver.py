"""A receiver of webhooks, built on the standard's own library: it verifies every delivery, and keeps books."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks import Webhook


@dataclass(frozen=True)
class Received:
    """One delivery that was verified, or why it was not."""

    id: str
    body: dict[str, Any]
    raw: str
    signatures: int
    fault: str | None = None


@dataclass
class Receiver:
    """By the path of its urls: what it is signed with, what is answered, and what came."""

    url: str
    secrets: dict[str, str] = field(default_factory=dict)
    answers: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    books: dict[str, list[Received]] = field(default_factory=dict)
    doors: dict[str, threading.Event] = field(default_factory=dict)
    """Who comes before they are open is answered when they are."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def at(self, path: str) -> str:
        return f"{self.url}{path}"

    def answer(self, path: str, status: int, body: bytes = b"", **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers[path] = (status, named, body)

    def got(self, path: str) -> list[Received]:
        with self.lock:
            return list(self.books.get(path, []))

    def take(self, path: str, headers: dict[str, str], raw: str) -> tuple[int, dict[str, str], bytes]:
        fault = None
        try:
            Webhook(self.secrets[path]).verify(raw, headers)
        except Exception as error:  # noqa: BLE001 - the test looks for it in the books
            fault = repr(error)
        signatures = len(headers.get("webhook-signature", "").split())
        with self.lock:
            entry = Received(headers.get("webhook-id", ""), json.loads(raw), raw, signatures, fault)
            self.books.setdefault(path, []).append(entry)
        if path in self.doors:
            self.doors[path].wait(60)
        return self.answers.get(path, (200, {}, b"thanks"))


@contextmanager
def receiving() -> Iterator[Receiver]:
    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"])).decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, said, body = receiver.take(self.path, headers, raw)
            self.send_response(status)
            for name, value in said.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Taking)
    server.daemon_threads = True
    receiver = Receiver(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

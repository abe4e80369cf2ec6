"""The imaginary provider of docs/adding_a_provider.md as a real HTTP server; also what can go wrong with it."""

import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from PIL import Image

KEY = "atelier-key-0123456789"


class Atelier(ThreadingHTTPServer):
    """A job is found waiting once and then done, unless its prompt says how else it ends. Orders whose prompt says
    `lost` are taken and not answered."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Desk)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.jobs: dict[str, dict[str, Any]] = {}
        self.orders: list[dict[str, Any]] = []
        drawn = io.BytesIO()
        Image.new("RGB", (64, 48), "teal").save(drawn, "png")
        self.picture = drawn.getvalue()

    def take(self, order: dict[str, Any]) -> dict[str, Any]:
        self.orders.append(order)
        job = {"id": f"j-{len(self.orders)}", "state": "waiting", "percent": 0, "files": [], "reason": None}
        self.jobs[str(job["id"])] = job
        return job

    def look_at(self, job: dict[str, Any]) -> dict[str, Any]:
        seen = dict(job)
        if job["state"] == "waiting":
            prompt = self.orders[int(job["id"].removeprefix("j-")) - 1]["prompt"]
            job["state"] = next((word for word in ("refused", "broken") if word in prompt), "done")
            job["files"] = [f"{self.url}/files/{job['id']}.png"] if job["state"] == "done" else []
        return seen

    def with_reference(self, reference: str) -> list[dict[str, Any]]:
        return [
            job for job, order in zip(self.jobs.values(), self.orders, strict=True) if order["reference"] == reference
        ]


class Desk(BaseHTTPRequestHandler):
    """The table of the page, call by call."""

    server: Atelier

    def do_POST(self) -> None:
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self._is_let_in():
            return
        job = self.server.take(order)
        if "lost" not in order["prompt"]:
            self._answer(200, {"job": {"id": job["id"], "state": job["state"]}})

    def do_GET(self) -> None:
        if self.path.startswith("/files/"):
            self._send(200, "image/png", self.server.picture)
        elif self._is_let_in():
            parts = urlsplit(self.path)
            if parts.query:
                self._answer(200, {"jobs": self.server.with_reference(parse_qs(parts.query)["reference"][0])})
            elif job := self._job():
                self._answer(200, {"job": self.server.look_at(job)})

    def do_DELETE(self) -> None:
        if self._is_let_in() and (job := self._job()):
            job["state"] = "stopped"
            self._answer(200, {"job": job})

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""

    def _is_let_in(self) -> bool:
        is_let_in = self.headers["Authorization"] == f"Bearer {KEY}"
        if not is_let_in:
            self._answer(401, {"error": "who are you?"})
        return is_let_in

    def _job(self) -> dict[str, Any] | None:
        job = self.server.jobs.get(self.path.removeprefix("/v1/jobs/"))
        if job is None:
            self._answer(404, {"error": "no such job"})
        return job

    def _answer(self, status: int, body: Any) -> None:
        self._send(status, "application/json", json.dumps(body).encode())

    def _send(self, status: int, media_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def an_atelier() -> Iterator[Atelier]:
    with Atelier() as atelier:
        thread = threading.Thread(target=atelier.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield atelier
        finally:
            atelier.shutdown()
            thread.join()

"""A receiver of webhooks that is a process, and writes its books before it answers: killed and started anew at will."""

# As a program (`python -m tests.support.killable_receiver PORT BOOKS SECRET`) it verifies what comes by the standard's
# own library, and appends a line of JSON for each: its id, what is wrong with it, and what it tells of.
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from standardwebhooks import Webhook

from tests.support.installation import leash
from tests.support.servers.private_servers import PROJECT
from windlass.services.laptop.ports import free_port


class KillableReceiver:
    """As the test holds it."""

    def __init__(self, books: Path) -> None:
        self._port, self._books = free_port(), books
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"http://127.0.0.1:{self._port}/hook"

    def start(self, secret: str) -> None:
        program = [sys.executable, "-m", "tests.support.killable_receiver", str(self._port), str(self._books), secret]
        self._process = subprocess.Popen([*leash(), *program], cwd=PROJECT)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def books(self) -> list[dict[str, Any]]:
        """A line that it was killed in the middle of was not answered, either."""
        lines = self._books.read_text().splitlines(keepends=True) if self._books.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]


@contextmanager
def killable_receiver(directory: Path) -> Iterator[KillableReceiver]:
    receiver = KillableReceiver(directory / "books")
    try:
        yield receiver
    finally:
        receiver.kill()


def receive(port: int, books: Path, secret: str) -> None:
    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"])).decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            fault = None
            try:
                Webhook(secret).verify(raw, headers)
            except Exception as error:  # noqa: BLE001 - the test looks for it in the books
                fault = repr(error)
            told = json.loads(raw)
            entry = {
                "id": headers["webhook-id"],
                "fault": fault,
                "type": told["type"],
                "task_id": told["data"]["task_id"],
            }
            with books.open("a") as book:
                book.write(json.dumps(entry) + "\n")
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_arguments: Any) -> None:
            pass

    ThreadingHTTPServer(("127.0.0.1", port), Taking).serve_forever()


if __name__ == "__main__":
    receive(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])

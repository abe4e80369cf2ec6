"""A receiver of webhooks under a storm, in a process that is killed as any other: it verifies by the standard's
library, writes into its books before it answers, and is of as many minds as it has paths.

`python -m tests.chaos.webhooks.receiver`, with STORM_RECEIVER_DIRECTORY and STORM_RECEIVER_PORT. `/steady-0` answers
well, `/slow-0` late, `/moody-0` with 500 and 429 at times, `/dead-0` never well, `/gone-0` with 410 at times; all are
well when there is a file `mended`.
"""

import os
import random
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from standardwebhooks import Webhook

from tests.chaos.webhooks.books import UNVERIFIED, Books

TIMEOUT_SECONDS = 3.0
"""So long an endpoint has in a storm (WINDLASS_WEBHOOK_TIMEOUT_SECONDS)."""
SPELL_SECONDS = 6

Said = tuple[int, dict[str, str]]
NOT_OURS: Said = (UNVERIFIED, {})


def is_verified(raw: str, headers: dict[str, str], secrets: list[str]) -> bool:
    for secret in reversed(secrets):
        try:
            Webhook(secret).verify(raw, headers)
        except Exception:  # noqa: BLE001 - malformed or wrong, it is not that one's
            continue
        return True
    return False


def mood(path: str, dice: random.Random) -> Said:
    """What it answers to something that it has taken; it may take its time."""
    throw, kind = dice.random(), path[1:].partition("-")[0]
    if kind == "slow":
        time.sleep(TIMEOUT_SECONDS + 0.5 if throw < 0.08 else dice.uniform(0.1, 1.2))
    elif kind == "moody":
        in_a_spell = random.Random(f"{path} {int(time.time() / SPELL_SECONDS)}").random() < 0.3
        if in_a_spell or throw < 0.15:
            return (500, {}) if throw < 0.8 else (429, {"retry-after": "1"})
    elif kind == "dead":
        return 503, {}
    elif kind == "gone" and throw < 0.1:
        return 410, {}
    return 200, {}


def serve(directory: Path, port: int) -> None:
    books, dice = Books(directory), random.Random()

    class Taking(BaseHTTPRequestHandler):
        timeout = 10

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = self.rfile.read(length)
            if len(body) < length:
                return  # whoever sent it was killed in the middle: nothing has come
            raw = body.decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, said = NOT_OURS
            if is_verified(raw, headers, books.secrets().get(self.path, [])):
                status, said = (200, {}) if books.is_mended else mood(self.path, dice)
            books.write(path=self.path, id=headers.get("webhook-id"), status=status, raw=raw)
            self.send_response(status)
            for name, value in said.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_arguments: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        allow_reuse_address = True

        def handle_error(self, *_arguments: Any) -> None:
            """A connection that was cut is nobody's fault here."""

    Server(("127.0.0.1", port), Taking).serve_forever()


if __name__ == "__main__":
    serve(Path(os.environ["STORM_RECEIVER_DIRECTORY"]), int(os.environ["STORM_RECEIVER_PORT"]))

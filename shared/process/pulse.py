"""A process's pulse: a file that says when it lived, and for how long to believe that, for probes from outside.

The process renews it from where its work is done; one that is stuck there falls silent, whatever its other threads do.
Nothing of the outside counts: restarting a process mends neither Postgres nor RabbitMQ.
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # whoever only asks need not load them
    from windlass.shared.settings import Settings

BEATS = 5
"""In the time for which one of them is believed: a machine that is busy for a moment is no reason to doubt it."""

STARTING, READY = "starting", "ready"


class Pulse:
    """Beats into a file, if there is one to beat into, for as long as `lives` says so."""

    def __init__(self, settings: "Settings", *, lives: Callable[[], bool] = lambda: True) -> None:
        self._file = settings.pulse_file
        self._believed_seconds = settings.pulse_seconds
        self._lives = lives
        self.is_ready = False
        """Whether it has begun its work, as far as that is its own affair."""

    def start(self) -> None:
        """On a thread of its own, which ends with the process: for a process whose work is done on threads."""
        threading.Thread(target=self._keep_beating, name="pulse", daemon=True).start()

    async def run(self) -> None:
        """On the caller's event loop, until cancelled: a loop that is stuck has no pulse."""
        import asyncio  # noqa: PLC0415 - as above

        while self._file is not None:
            self.beat()
            await asyncio.sleep(self._believed_seconds / BEATS)

    def beat(self) -> None:
        if self._file is None or not self._lives():
            return
        draft = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        # A disk that is full is its own trouble; the silence that follows from it is the truth.
        with suppress(OSError):
            state = READY if self.is_ready else STARTING
            draft.write_text(f"{state} {time.monotonic()} {self._believed_seconds}\n")
            draft.replace(self._file)

    def _keep_beating(self) -> None:
        while self._file is not None:
            self.beat()
            time.sleep(self._believed_seconds / BEATS)


def trouble(file: Path, *, ready: bool) -> str | None:
    """Why the process that beats into this file is not to be believed alive (or ready), or none when it is."""
    try:
        state, at, believed = file.read_text().split()
        silent, most = time.monotonic() - float(at), float(believed)
    except FileNotFoundError:
        return f"there is no pulse yet: {file}"
    except (OSError, ValueError) as error:
        return f"{file} holds no pulse: {error}"
    # One from before the machine was started anew may lie ahead.
    if not 0 <= silent <= most:
        return f"no pulse for {silent:.0f} s: the process is stuck, or a thread of it has died"
    if ready and state != READY:
        return "it lives, and has not got ready yet"
    return None


def main(arguments: list[str]) -> int:
    """`windlass alive FILE`, without what makes a start slow: kubelets ask every few seconds."""
    files = [argument for argument in arguments if argument != "--ready"]
    if len(files) != 1:
        print("usage: windlass alive [--ready] FILE", file=sys.stderr)
        return 2
    reason = trouble(Path(files[0]), ready="--ready" in arguments)
    if reason is not None:
        print(f"windlass: {reason}", file=sys.stderr)
    return 0 if reason is None else 1

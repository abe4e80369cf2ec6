"""Named places at which a drill may kill the worker, or hold whoever comes by: armed by a file of that name, which is
spent by the first."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from windlass.shared.settings import Settings

OF_ACTORS: Final = (
    "media-intended",
    "media-ordered",
    "media-job-known",
    "media-job-done",
    "media-downloaded",
    "media-file-kept",
    "media-contents-kept",
    "webhook-before-sending",
    "webhook-answered",
)

STEPS: Final = ("granted", "fetched", "taken-up", "entered", "returned", "over", "judged")
"""Of an attempt: it is known here and nobody has it; a thread or the loop has it; its slot is taken; it is inside the
middleware; its actor has returned and the result is not fitted; it has left the middleware; its end is judged, and the
writer does not have it."""

OF_THREADS: Final = tuple(f"thread-{step}" for step in STEPS)
OF_THE_LOOP: Final = tuple(f"loop-{step}" for step in STEPS)

OF_THE_WRITER: Final = ("doorbell-heard", "claim-asked", "claim-answered", "end-handed-over", "end-written")
"""A call that was asked for is not sent, or has been committed and nobody here knows of it."""

OF_THE_LONER: Final = ("alone-claim-asked", "alone-claim-answered", "alone-granted")
"""Of the process that runs one task at a time: its claim is not sent; it has been committed and nobody here knows of
it; the task is known here and has not begun. From there on it goes the way of all."""

STOP_HEARD: Final = "stop-heard"
"""The process is to stop, and has not begun to."""

PIPELINE: Final = (*OF_THE_WRITER[:3], *OF_THREADS, *OF_THE_LOOP, *OF_THE_WRITER[3:], STOP_HEARD)
"""Of a worker for all; `OF_THE_LONER` are those of the one beside it."""
FAILPOINTS: Final = (*OF_ACTORS, *PIPELINE, *OF_THE_LONER)

HOLD: Final = "hold"
"""In the file: whoever comes by stays there while the file, which is called `….held` then, is there. Without it, the
process is killed."""
HELD: Final = ".held"
LOOK_SECONDS: Final = 0.01


class Failpoints:
    """Only where `WINDLASS_PROBE_FAULTS` is set; elsewhere reaching one costs nothing."""

    def __init__(self, settings: Settings, folder: str = "failpoints") -> None:
        self._directory = f"{settings.data_dir}/{folder}" if settings.probe_faults else None

    @classmethod
    def of_the_pipeline(cls, settings: Settings) -> "Failpoints":
        """Every attempt passes them: nobody looks for one unless their folder is there when the process begins."""
        found = cls(settings, "failpoints/pipeline")
        if found._directory is not None and not os.path.isdir(found._directory):  # noqa: PTH112
            found._directory = None
        return found

    def reach(self, name: str) -> None:
        """On a thread that may wait."""
        if self._directory is not None and self._holds(name):
            self._wait(name)

    async def reach_async(self, name: str) -> None:
        """On a loop, which goes round meanwhile."""
        if self._directory is not None and self._holds(name):
            while self._is_held(name):  # noqa: ASYNC110 - it is let go by another process
                await asyncio.sleep(LOOK_SECONDS)

    def go_on(self, name: str, step: Callable[..., Any], *arguments: Any) -> None:
        """Where nobody may wait: who is held goes on by a thread of its own, with a step that may be taken by any."""
        if self._directory is None or not self._holds(name):
            step(*arguments)
            return

        def later() -> None:
            self._wait(name)
            step(*arguments)

        threading.Thread(target=later, name=name, daemon=True).start()

    def _holds(self, name: str) -> bool:
        """Whether this is the one who stays. The first spends it, and may be killed."""
        assert name in FAILPOINTS
        place = f"{self._directory}/{name}"
        if not os.access(place, os.F_OK):
            return False
        try:
            with open(place) as file:  # noqa: PTH123 - a place is passed by every attempt
                holds = file.read() == HOLD
            if holds:
                os.rename(place, place + HELD)  # noqa: PTH104
            else:
                os.unlink(place)  # noqa: PTH108
        except FileNotFoundError:
            return False  # somebody else was the first
        if not holds:
            os.kill(os.getpid(), signal.SIGKILL)
        return holds

    def _is_held(self, name: str) -> bool:
        return os.access(f"{self._directory}/{name}{HELD}", os.F_OK)

    def _wait(self, name: str) -> None:
        while self._is_held(name):
            time.sleep(LOOK_SECONDS)

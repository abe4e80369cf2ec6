"""SIGINT, SIGTERM and SIGHUP ask for an orderly stop; whoever asks again is in more of a hurry."""

import asyncio
import signal
from collections.abc import Callable
from typing import Final

ASKED_AGAIN_SECONDS: Final = 1.0


class StopSignals:
    """Calls `stop` at the first signal, `hurry` at the second and `kill` at each later one.

    `timeout make up` and the like deliver one wish several times at once: to the process group, and again
    through make. What arrives within a second is the same wish.
    """

    def __init__(self, stop: Callable[[str], None], hurry: Callable[[], None], kill: Callable[[], None]) -> None:
        self._stop = stop
        self._later = [kill, hurry]
        self._asked_at: float | None = None
        self._loop = asyncio.get_running_loop()
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._loop.add_signal_handler(signum, self._asked, signum)

    def _asked(self, signum: signal.Signals) -> None:
        if self._asked_at is None:
            self._asked_at = self._loop.time()
            self._stop(signal.Signals(signum).name)
        elif self._loop.time() - self._asked_at > ASKED_AGAIN_SECONDS:
            self._asked_at = self._loop.time()
            (self._later.pop() if len(self._later) > 1 else self._later[0])()

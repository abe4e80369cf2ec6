"""The quarantine: a second guardian below the first, whose worker runs what must run alone, for as long as needed.

It has a guardian of its own so that neither takes the other along: each kills, and proves dead, what is below itself.
"""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

from windlass.shared.errors import words_of

log = logging.getLogger("guardian")

QUARANTINE = "quarantine"
"""The worker's word to its guardian: there is a task that must run alone."""

AT_ONCE = signal.SIGUSR1
"""Tells a guardian, and a guardian its worker, to stop and to hand back now what runs, instead of letting it end."""

NO_LONGER_NEEDED = 75
"""How a worker exits that nobody needs any more: it is not to be started again."""


class Quarantine:
    """Opened when a worker asks for it; closes by itself when nothing is left to run alone."""

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._guardian: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Its guardian's, while there is one, or its end has not been noticed."""
        return None if self._guardian is None else self._guardian.pid

    def open(self) -> bool:
        """Whether it had to be opened, and could be; who asks is offered the task again, and asks again."""
        if self.is_open():
            return False
        command = [sys.executable, "-m", "windlass.services.actors", QUARANTINE, str(os.getpid()), self._worker]
        try:
            self._guardian = subprocess.Popen(command)
        except OSError as error:  # no memory or no process left: the worker must not lose its guardian for it
            log.warning("no process of its own can be started for a task (%s)", words_of(error))
            return False
        return True

    def is_open(self) -> bool:
        """Collects its guardian when that has ended."""
        if self._guardian is not None and self._guardian.poll() is not None:
            self._guardian = None
        return self._guardian is not None

    def tell_to_close(self, *, at_once: bool = False) -> None:
        """Its worker hands back what it runs, as everybody does."""
        if self._guardian is not None:
            self._guardian.send_signal(AT_ONCE if at_once else signal.SIGTERM)

    def wait_until_closed(self, seconds: float) -> None:
        if self._guardian is not None:
            with suppress(subprocess.TimeoutExpired):
                self._guardian.wait(max(0.0, seconds))
        self.is_open()


def asked_for(arguments: Sequence[str]) -> tuple[int, str] | None:
    """Whom this guardian belongs to and what its worker is, if it is the quarantine's."""
    if arguments[:1] != [QUARANTINE]:
        return None
    return int(arguments[1]), arguments[2]

"""What the guardian is told: when this process has to be dead unless it renews again."""

import math
import os
import threading
from collections.abc import Callable

from services.actors.quarantine import QUARANTINE
from shared.settings import Settings


class LeaseWatch:
    """Writes deadlines to the guardian's pipe.

    The clock was read before the call that took or renewed a lease, so that the lease in Postgres lasts at least as
    long; and the deadline is told after the answer came, so that a renewal that never happened is never believed.
    """

    def __init__(self, settings: Settings, pipe: int, *, guardian_gone: Callable[[], None]) -> None:
        self._spare = settings.stop_grace_seconds + settings.lease_margin_seconds
        self._pipe = pipe
        self._guardian_gone = guardian_gone
        self._lock = threading.Lock()
        self._deadline: float | None = None

    def introduce(self, worker_id: str) -> None:
        self._tell(worker_id)

    def renewed(self, lease_end: float) -> None:
        """Every lease of this process now lasts at least until then."""
        with self._lock:
            self._deadline = lease_end - self._spare
            self._tell(str(self._deadline))

    def claimed(self, lease_end: float) -> None:
        """One lease lasts until then: it ends the calm before the first renewal and while Postgres is away, and never
        extends what the others are bound to."""
        with self._lock:
            if self._deadline is None or math.isinf(self._deadline):
                self._deadline = lease_end - self._spare
                self._tell(str(self._deadline))

    def nothing_runs(self) -> None:
        """Postgres is away and all work has stopped: nothing here needs a lease, and the ends wait to be written."""
        with self._lock:
            if self._deadline is None or not math.isinf(self._deadline):
                self._deadline = math.inf
                self._tell(str(self._deadline))

    def ask_for_quarantine(self) -> None:
        """A task came that must run alone, and not in this process."""
        self._tell(QUARANTINE)

    def _tell(self, line: str) -> None:
        try:
            os.write(self._pipe, f"{line}\n".encode())
        except BrokenPipeError:
            self._guardian_gone()

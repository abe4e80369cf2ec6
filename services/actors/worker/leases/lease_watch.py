"""What the guardian is told: when this process has to be dead unless it renews again."""

import math
import os
import threading
from collections.abc import Callable, Iterable
from uuid import UUID

from windlass.services.actors.quarantine import QUARANTINE
from windlass.shared.settings import Settings


class LeaseWatch:
    """Keeps how long each lease of this process is known to last, and writes deadlines to the guardian's pipe.

    The clock was read before the call that took or renewed a lease, so that the lease in Postgres lasts at least as
    long; and the deadline is told after the answer came, so that a renewal that never happened is never believed. The
    least of them binds: one lease that could not be renewed while the others were is not forgotten over those.
    """

    def __init__(self, settings: Settings, pipe: int, *, guardian_gone: Callable[[], None]) -> None:
        self._spare = settings.stop_grace_seconds + settings.lease_margin_seconds
        self._pipe = pipe
        self._guardian_gone = guardian_gone
        self._lock = threading.Lock()
        self._leases: dict[UUID, float] = {}
        self._renewed_until = math.inf
        """What the last renewal confirmed; with none, or without work while Postgres is away, nothing binds but claims.
        A lease that ends before this was left out of it."""
        self._deadline: float | None = None

    def introduce(self, worker_id: str) -> None:
        self._tell(worker_id)

    def claimed(self, claim_tokens: Iterable[UUID], lease_end: float) -> None:
        """These leases last until then: they end the calm before the first renewal and while Postgres is away, and
        never extend what the others are bound to."""
        with self._lock:
            self._leases.update(dict.fromkeys(claim_tokens, lease_end))
            if self._deadline is None or lease_end - self._spare < self._deadline:
                self._say(lease_end)

    def renewed(self, claim_tokens: Iterable[UUID], lease_end: float) -> None:
        """These leases now last at least until then; the others as long as they did."""
        with self._lock:
            self._leases.update((token, lease_end) for token in claim_tokens if token in self._leases)
            self._renewed_until = lease_end
            self._say(self._earliest())

    def let_go(self, claim_token: UUID) -> None:
        """Nothing works under this lease any more: the attempt is over, or was told that it has lost its task."""
        with self._lock:
            lease_end = self._leases.pop(claim_token, math.inf)
            if lease_end < self._renewed_until and self._deadline is not None:
                self._say_if_new(self._earliest())

    def nothing_runs(self) -> None:
        """Postgres is away and all work has stopped: nothing here needs a lease, and the ends wait to be written."""
        with self._lock:
            self._renewed_until = math.inf
            self._say_if_new(self._earliest())

    def left_behind(self, before: float) -> list[UUID]:
        """The leases that the last renewal left out and that end before then."""
        with self._lock:
            soon = min(before, self._renewed_until)
            return [token for token, lease_end in self._leases.items() if lease_end < soon]

    def _earliest(self) -> float:
        return min((self._renewed_until, *self._leases.values()))

    def _say_if_new(self, lease_end: float) -> None:
        if lease_end - self._spare != self._deadline:
            self._say(lease_end)

    def _say(self, lease_end: float) -> None:
        self._deadline = lease_end - self._spare
        self._tell(str(self._deadline))

    def ask_for_quarantine(self) -> None:
        """A task came that must run alone, and not in this process."""
        self._tell(QUARANTINE)

    def _tell(self, line: str) -> None:
        try:
            os.write(self._pipe, f"{line}\n".encode())
        except BrokenPipeError:
            self._guardian_gone()

"""The providers' request rates as this process keeps them: one thread at a time asks for a place at a provider."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from windlass.services.actors.worker.rate_backend import Caller, PostgresBackend, ProviderRate
from windlass.shared import db
from windlass.shared.store.flow_control import rates

log = logging.getLogger("actors.rates")

BELIEVED_SECONDS = 0.5
"""What an operator changes is in force within a second; reading it more often would cost every task a call."""

GOES_ON_SECONDS = 0.5
"""For so long after that, while one thread looks again, the others go by what was seen last: none waits for it."""

TURN_CHECK_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 0.5
AGAIN_SECONDS = 0.25


class Gate:
    """One provider: the rate in force when it was last looked at, and the turn to ask for a place."""

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.rate: ProviderRate | None = None
        self.believed_until = 0.0

    @property
    def is_believed(self) -> bool:
        return time.monotonic() < self.believed_until

    @property
    def is_open(self) -> bool:
        """No rate was in force, lately: at once, or just before somebody began to look again."""
        if self.rate is not None:
            return False
        late = time.monotonic() - self.believed_until
        return late < 0 or (late < GOES_ON_SECONDS and self.turn.locked())


class Rates:
    """Takes places through Dramatiq's limiter. Waiting threads take turns, so that each process asks for one place at a
    time, however many of its tasks want one."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._backend = PostgresBackend(caller)
        self._lock = threading.Lock()
        self._gates: dict[str, Gate] = {}

    def take(self, provider: str, *, sleep: Callable[[float], None], on_wait: Callable[[str], None]) -> None:
        """Returns when a place is taken, or none is needed. `sleep` raises when waiting has become pointless."""
        gate = self._gate(provider)
        if gate.is_open:
            return
        with self._turn(gate, sleep, on_wait):
            while not self._try(provider, gate):
                if gate.rate is not None:
                    on_wait(_reason(gate.rate))
                sleep(AGAIN_SECONDS if gate.rate is None else min(gate.rate.slice_seconds, LONGEST_PAUSE_SECONDS))

    def _gate(self, provider: str) -> Gate:
        with self._lock:
            return self._gates.setdefault(provider, Gate())

    @contextmanager
    def _turn(self, gate: Gate, sleep: Callable[[float], None], on_wait: Callable[[str], None]) -> Iterator[None]:
        while not gate.turn.acquire(timeout=TURN_CHECK_SECONDS):
            if gate.rate is not None:
                on_wait(_reason(gate.rate))
            sleep(0)
        try:
            yield
        finally:
            gate.turn.release()

    def _try(self, provider: str, gate: Gate) -> bool:
        """An answer that does not come in time took a place at most: less is used than the rate allows, never more."""
        try:
            if not gate.is_believed:
                self._look(provider, gate)
            if gate.rate is None:
                return True
            with gate.rate.acquire(raise_on_failure=False) as acquired:
                return bool(acquired)
        except db.AWAY_OR_BUSY as error:
            log.warning("%s: asking again for a place in its rate (%s)", provider, error or type(error).__name__)
            return False

    def _look(self, provider: str, gate: Gate) -> None:
        asked_at = time.monotonic()
        found = self._caller.call(partial(rates.in_force, provider=provider))
        offset = found.seconds_since_epoch - asked_at
        if found.limit is None or found.per_seconds is None:
            gate.rate = None
        else:
            gate.rate = ProviderRate(
                self._backend,
                provider,
                limit=found.limit,
                per_seconds=found.per_seconds,
                clock=lambda: time.monotonic() + offset,
            )
        gate.believed_until = asked_at + BELIEVED_SECONDS


def _reason(rate: ProviderRate) -> str:
    return f"Waiting for the provider's rate ({rate.limit} in {rate.window} s)"

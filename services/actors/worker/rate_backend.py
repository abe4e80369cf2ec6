"""Dramatiq's rate limiters on Postgres: a backend for them, and the sliding window that keeps a provider's rate."""

import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from dramatiq.rate_limits import RateLimiterBackend, WindowRateLimiter

from windlass.shared.db import Database
from windlass.shared.store.flow_control import rates

Answer = TypeVar("Answer")

FIRST_LOOK_SECONDS = 0.02
LOOK_SECONDS = 0.5

SLICES = 20
"""Into how many pieces a window is cut: the finer, the less of the rate is given away to certainty."""


class Caller(Protocol):
    """Where the connections are: makes a call of the store there, and waits for its answer in the caller's thread."""

    def call(self, intent: Callable[[Database], Coroutine[Any, Any, Answer]]) -> Answer: ...


class PostgresBackend(RateLimiterBackend):
    """Counters with a time to live, the same for every process that uses the database.

    Lives end by Postgres' clock. The keys, though, are the limiters' own: Dramatiq's window and bucket limiters put
    each host's `time.time()` into them, so hosts whose clocks differ by more than a window or bucket count apart, and
    each of them may use up the limit; by less, and they overlap in part. `ProviderRate` counts by one clock.

    Errors of the database come out as they are: what then is for the caller to say, who may be counting a barrier's
    parties, where a repeated call would count one twice.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def add(self, key: str, value: int, ttl: int) -> bool:
        return self._caller.call(partial(rates.add, key=key, value=value, ttl_seconds=ttl / 1000))

    def incr(self, key: str, amount: int, maximum: int, ttl: int) -> bool:
        return self._caller.call(
            partial(rates.move, key=key, change=amount, highest=maximum, summed=[key], ttl_seconds=ttl / 1000)
        )

    def decr(self, key: str, amount: int, minimum: int, ttl: int) -> bool:
        return self._caller.call(partial(rates.move, key=key, change=-amount, lowest=minimum, ttl_seconds=ttl / 1000))

    def incr_and_sum(
        self, key: str, keys: Callable[[], Sequence[str]], amount: int, maximum: int, ttl: int
    ) -> bool:  # fmt: skip
        return self._caller.call(
            partial(rates.move, key=key, change=amount, highest=maximum, summed=keys(), ttl_seconds=ttl / 1000)
        )

    def wait(self, key: str, timeout: int | None) -> bool:
        """Looks a few times a second: only barriers wait, and a worker has no connection to spare for listening.

        As with Redis, who comes after the notification is let through as long as it lives; none is no timeout.
        """
        until = None if timeout is None else time.monotonic() + timeout / 1000
        pause = FIRST_LOOK_SECONDS
        while not self._caller.call(partial(rates.is_announced, key=key)):
            left = LOOK_SECONDS if until is None else until - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause, left))
            pause = min(pause * 2, LOOK_SECONDS)
        return True

    def wait_notify(self, key: str, ttl: int) -> None:
        self._caller.call(partial(rates.announce, key=key, ttl_seconds=ttl / 1000))


class ProviderRate(WindowRateLimiter):
    """Dramatiq's sliding window, cut finer and counted by Postgres' clock.

    Dramatiq counts by whole seconds, and forgets the one that began `window` seconds ago although its calls may have
    come at its end: a little over one second apart, two bursts would fit into a window of two. Here a call counts until
    its slice and one more are over: the provider sees calls a little after they took their place, not all equally late.
    So a full rate is used up to nine tenths, and never over. Another `per_seconds` begins to count anew.
    """

    def __init__(
        self, backend: RateLimiterBackend, provider: str, *, limit: int, per_seconds: int, clock: Callable[[], float]
    ) -> None:
        key = f"rate:{provider}:{per_seconds}"
        super().__init__(backend, key, limit=limit, window=per_seconds)  # type: ignore[no-untyped-call]
        self.slice_seconds = per_seconds / SLICES
        self.window_millis = round((SLICES + 2) * self.slice_seconds * 1000)
        self._clock = clock

    def _get_keys(self) -> list[str]:
        newest = int(self._clock() / self.slice_seconds)
        return [f"{self.key}@{newest - age}" for age in range(SLICES + 2)]

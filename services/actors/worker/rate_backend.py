"""Dramatiq's rate limiters on Postgres: a backend for them, for actors with something of their own to limit."""

import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from dramatiq.rate_limits import RateLimiterBackend

from windlass.shared.backoff import Backoff
from windlass.shared.db import Database
from windlass.shared.store.flow_control import rates

Answer = TypeVar("Answer")

FIRST_LOOK_SECONDS = 0.02
LOOK_SECONDS = 0.5


class Caller(Protocol):
    """Where the connections are: makes a call of the store there, and waits for its answer in the caller's thread."""

    def call(self, intent: Callable[[Database], Coroutine[Any, Any, Answer]]) -> Answer: ...


class PostgresBackend(RateLimiterBackend):
    """Counters with a time to live, the same for every process that uses the database.

    Lives end by Postgres' clock. The keys, though, are the limiters' own: Dramatiq's window and bucket limiters put
    each host's `time.time()` into them, so hosts whose clocks differ by more than a window or bucket count apart, and
    each of them may use up the limit; by less, and they overlap in part. A provider's own rate is kept by the claim,
    by one clock.

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
        """The keys are those of a moment, and the call may have to wait for others: where the window has moved on
        meanwhile, what they took in its newest part was not counted, and is looked at once more."""
        move = partial(rates.move, key=key, highest=maximum, ttl_seconds=ttl / 1000)
        counted = keys()
        granted = self._caller.call(partial(move, change=amount, summed=counted))
        if granted and (since := keys()) != counted and not self._caller.call(partial(move, change=0, summed=since)):
            self.decr(key, amount, 0, ttl)
            return False
        return granted

    def wait(self, key: str, timeout: int | None) -> bool:
        """Looks a few times a second: only barriers wait, and a worker has no connection to spare for listening.

        As with Redis, who comes after the notification is let through as long as it lives; none is no timeout.
        """
        until = None if timeout is None else time.monotonic() + timeout / 1000
        backoff = Backoff(first_seconds=FIRST_LOOK_SECONDS, longest_seconds=LOOK_SECONDS)
        while not self._caller.call(partial(rates.is_announced, key=key)):
            left = LOOK_SECONDS if until is None else until - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(backoff.pause(), left))
        return True

    def wait_notify(self, key: str, ttl: int) -> None:
        self._caller.call(partial(rates.announce, key=key, ttl_seconds=ttl / 1000))

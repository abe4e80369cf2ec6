"""Verified keys, kept in memory for moments, so that a request does not cost a question about its key."""

import asyncio
import hashlib
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from windlass.services.api.access.auth import Caller
from windlass.services.api.access.stay import Stay
from windlass.services.api.streams.single_flight import SingleFlight
from windlass.shared.db import Database
from windlass.shared.store.access import keys
from windlass.shared.store.access.keys import LivingKey

KEPT_SECONDS = 10.0
"""How long a revoked key may still open an api that cannot hear of it: its listener has lost Postgres."""

MOST_KEPT = 1000


@dataclass(frozen=True)
class Kept:
    caller: Caller
    until: float


class Keyring:
    """Knows a key by the hash of the whole of it; a key that does not open is never kept. It also knows which answers
    are open under which key, and has them ask again when it hears something about that key."""

    def __init__(self, db: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._db = db
        self._clock = clock
        self._kept: OrderedDict[bytes, Kept] = OrderedDict()
        self._stays: defaultdict[str, set[Stay]] = defaultdict(set)
        self._reads = SingleFlight()
        self._changes = 0

    async def open(self, key: str) -> Caller | None:
        """Whose key it is, or none when it opens nothing."""
        name = hashlib.sha256(key.encode()).digest()
        kept = self._kept.get(name)
        now = self._clock()
        if kept is not None and now < kept.until:
            return kept.caller
        changes = self._changes
        row = await keys.authenticate(self._db, key)
        if row is None:
            self._kept.pop(name, None)
            return None
        caller = self._caller(row, now, changes)
        # What was read before a change became known may be what has changed since: it serves this request alone.
        if changes == self._changes:
            until = now + KEPT_SECONDS
            self._keep(name, Kept(caller, until if caller.until is None else min(until, caller.until)))
        return caller

    async def vouched_for(self, key_id: str) -> Caller | None:
        """The owner of a key that has opened before, by word of something that we signed: as long as it would."""
        now, changes = self._clock(), self._changes
        row = await keys.valid(self._db, key_id)
        return None if row is None else self._caller(row, now, changes)

    @contextmanager
    def stay(self, caller: Caller, wake: Callable[[], None]) -> Iterator[Stay]:
        """Something stays open for the caller. `wake` is called when it may be over: idle, it asks for nothing."""
        stay = Stay(caller.key_id, wake, partial(self._is_valid, caller.key_id))
        if caller.as_of != self._changes:
            stay.doubt()  # something became known between the look at the key and now
        expiring = None
        if caller.until is not None:
            left = max(0.0, caller.until - self._clock())
            expiring = asyncio.get_running_loop().call_later(left, stay.end)
        self._stays[caller.key_id].add(stay)
        try:
            yield stay
        finally:
            if expiring is not None:
                expiring.cancel()
            self._stays[caller.key_id].discard(stay)
            if not self._stays[caller.key_id]:
                del self._stays[caller.key_id]

    def forget(self, key_id: str) -> None:
        """Heard from Postgres: this key has changed, or, `*`, any may have while nobody listened."""
        self._changes += 1
        for name in [name for name, kept in self._kept.items() if key_id in {"*", kept.caller.key_id}]:
            del self._kept[name]
        self._reads.forget()
        for stays in list(self._stays.values()) if key_id == "*" else [self._stays.get(key_id, set())]:
            for stay in stays:
                stay.doubt()

    async def _is_valid(self, key_id: str) -> bool:
        """One question, however many streams of that key ask at once."""
        return await self._reads.once(key_id, partial(keys.valid, self._db, key_id)) is not None

    def _caller(self, row: LivingKey, now: float, changes: int) -> Caller:
        left = row.seconds_left
        until = None if left is None else now + left
        return Caller(row.key_id, row.role, row.user_id, until=until, as_of=changes)

    def _keep(self, name: bytes, kept: Kept) -> None:
        self._kept[name] = kept
        self._kept.move_to_end(name)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)

    def __len__(self) -> int:
        return len(self._kept)

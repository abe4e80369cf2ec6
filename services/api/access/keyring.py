"""Verified keys, kept in memory for moments, so that a request does not cost a question about its key."""

import asyncio
import hashlib
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from windlass.services.api.access.auth import Caller
from windlass.services.api.access.stay import Stay
from windlass.services.api.streams.single_flight import SingleFlight
from windlass.shared import db as postgres
from windlass.shared.db import Database
from windlass.shared.store.access import keys, sessions
from windlass.shared.store.access.keys import LivingKey
from windlass.shared.store.access.sessions import LivingSession

KEPT_SECONDS = 10.0
"""How long a revoked key may still open an api that cannot hear of it: its listener has lost Postgres."""

MOST_KEPT = 1000


@dataclass(frozen=True)
class Kept:
    caller: Caller
    until: float


class Keyring:
    """Knows a key, and a session's secret, by the hash of the whole of it; what does not open is never kept. It also
    knows which answers are open under which key, and has them ask again when it hears something about that key."""

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
        self._keep_unless_changed(name, caller, now)
        return caller

    async def open_session(self, secret: str) -> tuple[Caller, LivingSession | None] | None:
        """Who has signed in with a key, while that key opens; and the session, where it has just been renewed."""
        session_hash = keys.fingerprint(secret)
        name = b"session " + session_hash  # no key: it opens as a cookie alone
        kept = self._kept.get(name)
        now = self._clock()
        if kept is not None and now < kept.until:
            return kept.caller, None
        changes = self._changes
        row = await sessions.living(self._db, session_hash)
        if row is None:
            self._kept.pop(name, None)
            return None
        renewed = await self._renewed(session_hash) if row.is_to_renew else None
        caller = replace(self._caller(renewed or row, now, changes), session_hash=session_hash)
        self._keep_unless_changed(name, caller, now)
        return caller, renewed

    async def vouched_for(self, key_id: str) -> Caller | None:
        """The owner of a key that has opened before, by word of something that we signed: as long as it would."""
        now, changes = self._clock(), self._changes
        row = await keys.valid(self._db, key_id)
        return None if row is None else self._caller(row, now, changes)

    @contextmanager
    def stay(self, caller: Caller, wake: Callable[[], None]) -> Iterator[Stay]:
        """Something stays open for the caller. `wake` is called when it may be over: idle, it asks for nothing."""
        stay = Stay(caller.key_id, wake, partial(self._is_valid, caller))
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

    async def _renewed(self, session_hash: bytes) -> LivingSession | None:
        """None when it cannot be stored: where nothing can be written, reading goes on."""
        try:
            await sessions.renew(self._db, session_hash)
            return await sessions.living(self._db, session_hash)
        except postgres.AWAY_OR_BUSY:
            return None

    async def _is_valid(self, caller: Caller) -> bool:
        """One question, however many streams of that key, or of that session, ask at once."""
        if caller.session_hash is not None:
            asked = partial(sessions.living, self._db, caller.session_hash)
            return await self._reads.once(caller.session_hash, asked) is not None
        return await self._reads.once(caller.key_id, partial(keys.valid, self._db, caller.key_id)) is not None

    def _caller(self, row: LivingKey | LivingSession, now: float, changes: int) -> Caller:
        left = row.seconds_left
        until = None if left is None else now + left
        return Caller(row.key_id, row.role, row.user_id, until=until, as_of=changes)

    def _keep_unless_changed(self, name: bytes, caller: Caller, now: float) -> None:
        """What was read before a change became known may be what has changed since: it serves this request alone."""
        if caller.as_of != self._changes:
            return
        until = now + KEPT_SECONDS
        self._kept[name] = Kept(caller, until if caller.until is None else min(until, caller.until))
        self._kept.move_to_end(name)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)

    def __len__(self) -> int:
        return len(self._kept)

"""Verified keys, kept in memory for moments, so that a request does not cost a question about its key."""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from services.api.auth import Caller
from shared.db import Database
from shared.store import keys

KEPT_SECONDS = 10.0
"""How long a revoked key may still open an api that cannot hear of it: its listener has lost Postgres."""

MOST_KEPT = 1000


@dataclass(frozen=True)
class Kept:
    caller: Caller
    until: float


class Keyring:
    """Knows a key by the hash of the whole of it; a key that does not open is never kept."""

    def __init__(self, db: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._db = db
        self._clock = clock
        self._kept: OrderedDict[bytes, Kept] = OrderedDict()
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
        caller = Caller(row["key_id"], row["role"], row["user_id"])
        # What was read before a change became known may be what has changed since: it serves this request alone.
        if changes == self._changes:
            left = row["seconds_left"]
            self._keep(name, Kept(caller, now + (KEPT_SECONDS if left is None else min(KEPT_SECONDS, left))))
        return caller

    def forget(self, key_id: str) -> None:
        """Heard from Postgres: this key has changed, or, `*`, any may have while nobody listened."""
        self._changes += 1
        for name in [name for name, kept in self._kept.items() if key_id in {"*", kept.caller.key_id}]:
            del self._kept[name]

    def _keep(self, name: bytes, kept: Kept) -> None:
        self._kept[name] = kept
        self._kept.move_to_end(name)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)

    def __len__(self) -> int:
        return len(self._kept)

"""Looks once for all streams over many tasks what has happened, and wakes those alone whose filter it matches."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from windlass.services.api.streams.subscription import Subscription
from windlass.shared import db
from windlass.shared.backoff import Backoff
from windlass.shared.db import Database
from windlass.shared.store.reading import commit_order
from windlass.shared.store.reading.commit_order import BEGINNING, Position, Sighting, Wanted

if TYPE_CHECKING:
    from windlass.services.api.streams.hub import Hub

LOOK_ROWS = 1000
BREATH_SECONDS = 0.05
"""Between two looks, however much goes on: what gathers meanwhile is read in one."""
LONGEST_SETTLING_SECONDS = 0.5

Key = tuple[str, object]


class Follower(Subscription):
    """One stream's flag, and how much of everybody's history it need not read."""

    __slots__ = ("_scout", "_unread_from", "wanted")

    def __init__(self, scout: "Scout", wanted: Wanted) -> None:
        super().__init__()
        self._scout = scout
        self.wanted = wanted
        self._unread_from: Position | None = BEGINNING

    def clear(self) -> None:
        super().clear()
        self._unread_from = None

    def concern(self, unread_from: Position) -> None:
        """There is something for it behind this position."""
        if self._unread_from is None:
            self._unread_from = unread_from
        self.wake()

    def nothing_before(self) -> Position:
        """A stream that has read everything that was settled after its last `clear` may go on from here."""
        return self._scout.position if self._unread_from is None else self._unread_from


class Scout:
    """Reads the keys of events in the order of commit, as long as there is a follower. A follower that nothing
    concerns is not woken and reads nothing, so that idle streams cost the others nothing."""

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        self._followers: defaultdict[Key, set[Follower]] = defaultdict(set)
        self._looking: asyncio.Task[None] | None = None
        self.position = BEGINNING
        """Everything up to here was held against the filters of all who follow."""

    @contextmanager
    def follow(self, pool: Database, wanted: Wanted) -> Iterator[Follower]:
        """Follow before the first read, or miss what comes between. Leaving is synchronous: a client's disconnection
        cancels whatever the stream still awaits."""
        follower = Follower(self, wanted)
        keys = keys_of(wanted)
        for key in keys:
            self._followers[key].add(follower)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_on(pool), name="scout")
        try:
            yield follower
        finally:
            for key in keys:
                self._followers[key].discard(follower)
                if not self._followers[key]:
                    del self._followers[key]
            if not self._followers and self._looking is not None:
                self._looking.cancel()
                self._looking = None

    def everybody(self) -> set[Follower]:
        return set[Follower]().union(*self._followers.values())

    async def _look_on(self, pool: Database) -> None:
        settling = Backoff(first_seconds=BREATH_SECONDS, longest_seconds=LONGEST_SETTLING_SECONDS)
        started = False
        with self._hub.subscribe(None) as subscription:
            while True:
                subscription.clear()
                looked_at = time.monotonic()
                try:
                    if not started:
                        await self._start(pool)
                        started = True
                    sight = await commit_order.sight(pool, self.position, at_most=LOOK_ROWS)
                except db.AWAY_OR_BUSY + db.NOT_MIGRATED:
                    started = False  # what is there afterwards may be an older state, which was restored
                    await subscription.bear_an_outage()
                    continue
                self._wake_the_concerned(sight.seen, sight.end)
                subscription.seen = self.position
                if sight.has_unsettled:
                    # Nobody notifies when a transaction ends that has written no event: look again, soon, then less so.
                    await subscription.news(settling.pause())
                else:
                    settling.renew()
                    if not sight.is_full:
                        await subscription.news(3600)
                await asyncio.sleep(max(0, looked_at + BREATH_SECONDS - time.monotonic()))

    async def _start(self, pool: Database) -> None:
        """What was settled before was held against nothing: everybody has to read it."""
        self.position = await commit_order.newest_settled(pool)
        self._hub.reads.forget()
        for follower in self.everybody():
            follower.concern(BEGINNING)

    def _wake_the_concerned(self, seen: list[Sighting], end: Position) -> None:
        # A read under way may end before this: those who are woken now must not join it.
        self._hub.reads.forget()
        before, self.position = self.position, end
        concerned: set[Follower] = set()
        for task_id, project_id, workflow_id, user_id in {
            (each.task_id, each.project_id, each.workflow_id, each.user_id) for each in seen
        }:
            facts = (("task", task_id), ("workflow", workflow_id), ("project", project_id), ("user", user_id), ANYTHING)
            for key in facts:
                for follower in self._followers.get(key, ()):
                    if follower.wanted.covers(task_id, project_id, workflow_id, user_id):
                        concerned.add(follower)
        for follower in concerned:
            follower.concern(before)


ANYTHING: Key = ("anything", None)


def keys_of(wanted: Wanted) -> list[Key]:
    """By what it is found: the narrowest that it asks for."""
    if wanted.task_ids is not None:
        return [("task", task_id) for task_id in wanted.task_ids]
    for name, value in (
        ("workflow", wanted.workflow_id),
        ("project", wanted.project_id),
        ("user", wanted.user_id or wanted.visible_to),
    ):
        if value is not None:
            return [(name, value)]
    return [ANYTHING]

"""Finds the subjects that have outbox rows and hands them to their features, a few at the same time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import islice
from typing import TypeVar
from uuid import UUID

from windlass.shared import db
from windlass.shared.backoff import Backoff
from windlass.shared.errors import words_of
from windlass.shared.features.feature import Feature
from windlass.shared.features.handling import handle_pending
from windlass.shared.metrics.outbox import FAILED, HANDLED
from windlass.shared.process.lifetime import until_set
from windlass.shared.store import outbox
from windlass.shared.store.outbox import Key

log = logging.getLogger("orchestrator")

T = TypeVar("T")

WORKERS = 4
MOST_FOUND = 1000
FULL_LOOK_SECONDS = 15.0
"""A full look finds rows that another process left behind, rows of a restored database, and subjects whose next try is
due."""
BUSY_SECONDS = 0.25
AWAY_SECONDS = 1.0


class Relay:
    """Any number of relays may run: the transaction that handles rows locks their subject and deletes them."""

    def __init__(self, pool: db.Pool, features: Iterable[Feature]) -> None:
        self._pool = pool
        self._features = {feature.name: feature for feature in features}
        self._waiting: dict[str, dict[UUID, None]] = {name: {} for name in self._features}
        """By feature, first come, first served. A subject leaves this queue before its rows are read, so that a later
        row queues it again."""
        self._handling: set[Key] = set()
        self._again: set[Key] = set()
        """Found again while they are handled."""
        self._filled = asyncio.Event()
        self._has_room = asyncio.Event()
        self._woken = asyncio.Event()
        self._needs_full_look = asyncio.Event()
        for name in self._features:
            HANDLED.labels(name)
            FAILED.labels(name)

    def wake(self, _payload: str = "") -> None:
        self._woken.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._look_for_new())
            group.create_task(self._look_at_all())
            for _ in range(WORKERS):
                group.create_task(self._work())

    async def _look_for_new(self) -> None:
        """Looks at the rows of transactions that were open at the last look, or began since."""
        since = 0
        while True:
            self._woken.clear()
            found = await _patiently(lambda: outbox.new_rows(self._pool, since=since, at_most=MOST_FOUND))  # noqa: B023
            self._enqueue(found.keys)
            since = found.line
            if not found.is_complete:
                self._needs_full_look.set()
            await self._woken.wait()

    async def _look_at_all(self) -> None:
        """Passes over all subjects in turn, however many rows each of them has."""
        after: Key | None = None
        while True:
            if after is None:
                self._needs_full_look.clear()
                if ended := await _patiently(lambda: outbox.end_frozen(self._pool)):
                    log.warning("frozen_transactions_ended count=%d", ended)
            page = await _patiently(lambda: outbox.walk(self._pool, after=after, at_most=MOST_FOUND))  # noqa: B023
            self._enqueue(page.keys)
            after = page.last
            while sum(map(len, self._waiting.values())) >= MOST_FOUND:
                self._has_room.clear()
                await self._has_room.wait()
            if after is None:
                await until_set(self._needs_full_look, at_most_seconds=FULL_LOOK_SECONDS)

    def _enqueue(self, keys: Iterable[Key]) -> None:
        for key in keys:
            feature, subject = key
            if feature not in self._waiting:
                continue  # a newer build has this feature
            if key in self._handling:
                self._again.add(key)
            else:
                self._waiting[feature].setdefault(subject)
                self._filled.set()

    def _take(self) -> tuple[Feature, list[UUID]] | None:
        """The next subjects of a feature. The features take turns."""
        for name, subjects in self._waiting.items():
            if subjects:
                feature = self._features[name]
                taken = list(islice(subjects, feature.subjects_at_once))
                for subject in taken:
                    del subjects[subject]
                self._waiting[name] = self._waiting.pop(name)
                return feature, taken
        return None

    async def _work(self) -> None:
        while True:
            taken = self._take()
            if taken is None:
                self._filled.clear()
                await self._filled.wait()
                continue
            feature, subjects = taken
            self._has_room.set()
            keys = {(feature.name, subject) for subject in subjects}
            self._handling |= keys
            try:
                await self._handle(feature, subjects)
            finally:
                self._handling -= keys
            again = self._again & keys
            self._again -= again
            self._enqueue(again)

    async def _handle(self, feature: Feature, subjects: Sequence[UUID]) -> None:
        try:
            outcome = await handle_pending(self._pool, feature, subjects)
        except db.AWAY_OR_BUSY + db.NOT_MIGRATED as error:
            log.warning("outbox_postponed feature=%s error=%s", feature.name, words_of(error))
            self._later(feature, subjects, AWAY_SECONDS)
            return
        self._again.update((feature.name, subject) for subject in outcome.unfinished)
        self._later(feature, outcome.busy, BUSY_SECONDS)
        for subject, seconds in outcome.failed.items():
            self._later(feature, [subject], seconds)

    def _later(self, feature: Feature, subjects: Sequence[UUID], seconds: float) -> None:
        if subjects:
            keys = [(feature.name, subject) for subject in subjects]
            asyncio.get_running_loop().call_later(seconds, self._enqueue, keys)


async def _patiently(look: Callable[[], Awaitable[T]]) -> T:
    """Repeats a look while Postgres is away or not migrated yet."""
    backoff = Backoff(first_seconds=0.1, longest_seconds=2)
    while True:
        try:
            return await look()
        except db.AWAY_OR_BUSY + db.NOT_MIGRATED as error:
            pause = backoff.pause()
            log.warning("outbox_look_failed retry_in=%.1fs error=%s", pause, words_of(error))
            await asyncio.sleep(pause)

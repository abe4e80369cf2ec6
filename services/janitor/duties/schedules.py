"""Schedules: what is due is started, what has ended is written down, and what happened is logged and counted."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import datetime

from windlass.services.janitor.next_due import NextDue
from windlass.shared.db import CONTENDED, Database
from windlass.shared.metrics.schedules import FAILURES, LATE_SECONDS
from windlass.shared.schedules.words import Outcome
from windlass.shared.store.schedules import firing
from windlass.shared.store.schedules.firing import Decided
from windlass.shared.store.schedules.reading import Read

log = logging.getLogger("janitor")

AT_MOST = 200
"""Schedules that are read at once."""

AGAIN_SECONDS = 0.1
"""When somebody else was at all that is due."""


async def look_after_schedules(db: Database, next_due: NextDue) -> None:
    """All that is due now, and all that was called for; then it is known when the next is due."""
    called, may_be_more = next_due.take_called()
    if may_be_more:
        called |= set(await firing.unsettled(db))
    for schedule_id in sorted(called):
        try:
            await firing.settle(db, schedule_id)
        except CONTENDED:
            next_due.called(schedule_id)
    while rows := await firing.due_now(db, at_most=AT_MOST):
        if not await fire_all(db, rows):
            await asyncio.sleep(AGAIN_SECONDS)
    next_due.in_seconds(await firing.seconds_to_next(db))
    await say_what_happened(db)


async def fire_all(db: Database, rows: Sequence[Read]) -> bool:
    """Whether anything was left to be decided here: other janitors look at the same."""
    did_something = False
    for batch in firing.batches(rows):
        now = batch[0].read_at
        try:
            decided = await firing.fire(db, [firing.planned(row) for row in batch], now)
        except CONTENDED:
            continue
        did_something = did_something or bool(decided)
        observe(batch, decided, now)
    return did_something


def observe(batch: Sequence[Read], decided: Sequence[Decided], now: datetime) -> None:
    """How late those are that were on time as far as anybody could help it: the next one of each schedule."""
    next_times = {row.schedule_id: (row.next_due_at, row.next_at) for row in batch}
    for each in decided:
        due_at, next_at = next_times[each.schedule_id]
        if each.outcome == Outcome.STARTED and each.due_at == due_at and next_at is not None:
            LATE_SECONDS.labels(each.kind).observe(max((now - next_at).total_seconds(), 0))


async def say_what_happened(db: Database) -> None:
    while events := await firing.say_what_happened(db):
        for each in events:
            data = each.data
            if each.type == "failed":
                FAILURES.inc()
                log.warning(
                    "schedule %s (%s, of %s) failed, due %s: %s; %s in a row",
                    each.schedule_id, each.name, each.user_id, data["due_at"],
                    data.get("ended_as") or data.get("reason"), data["failures"],
                )  # fmt: skip
            else:
                log.info(
                    "schedule %s (%s, of %s): %s %s",
                    each.schedule_id, each.name, each.user_id, each.type, data.get("reason", ""),
                )  # fmt: skip


async def recheck_schedules(db: Database) -> None:
    """What has ended while nobody listened; and what became of due times, in case nobody was called."""
    for schedule_id in await firing.unsettled(db):
        await firing.settle(db, schedule_id)
    await say_what_happened(db)

"""One round of dispatching: look at the providers, admit, reserve, ring, give back what could not be rung."""

import logging
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from uuid import uuid4

from windlass.services.dispatcher.backlog import RetryBacklog
from windlass.services.dispatcher.publisher import Doorbell, Publisher
from windlass.shared import tracing
from windlass.shared.admission import admit
from windlass.shared.db import Database
from windlass.shared.metrics.services import DISPATCH_BATCH, DISPATCH_CONFIRM_SECONDS, DOORBELLS, DOORBELLS_AGAIN
from windlass.shared.settings import Settings
from windlass.shared.store.flow_control import providers
from windlass.shared.store.rows import TaskRow

log = logging.getLogger("dispatcher")

FIRST_CHECK_SECONDS = 2
"""A row that was rung for and is still unclaimed after this long may have lost its doorbell."""

CHECKS_BEFORE_RINGING_ANYWAY = 6
"""After so many checks a row is rung for again though messages wait in its queue: its own may not be among them."""


async def dispatch_due(
    db: Database,
    publisher: Publisher,
    backlog: RetryBacklog,
    settings: Settings,
    *,
    only: Collection[str] | None = None,
) -> set[str]:
    """Rings for everything that may start now, of all providers or only of these; returns those at which there may be
    more to do at once."""
    again = set()
    views = await providers.look(db, heard_within_seconds=settings.lease_seconds, only=only)
    for view in await backlog.fill_in(db, views):
        admission = admit(replace(view, broker=publisher.state, lanes=settings.lanes))
        if admission.nobody:
            continue
        token = uuid4()
        rows = await providers.reserve(db, view, admission, token, traced=tracing.is_on())
        if not rows:
            again.add(view.name)  # somebody else was quicker: what was seen is no longer true
            continue
        if max(admission.fresh, admission.retry) >= providers.DUE_COUNTED:
            again.add(view.name)  # everything that a look counts goes: there may be more, and nothing else would say so
        missed = await _ring(publisher, rows)
        if missed:
            await providers.give_back(db, token, [bell.task_id for bell in missed])
            _count(missed, "given_back")
    return again


async def ring_again(db: Database, publisher: Publisher, settings: Settings) -> None:
    """Rings again for rows that nobody has claimed although no message waits for a worker: theirs were lost."""
    silent = await providers.check_doorbells(
        db, first_after_seconds=FIRST_CHECK_SECONDS, at_most_seconds=settings.safety_poll_seconds
    )
    for queue in {row.queue for row in silent}:
        ready = await publisher.ready_messages(queue)
        lost = [
            row
            for row in silent
            if row.queue == queue and (ready == 0 or row.doorbell_count % CHECKS_BEFORE_RINGING_ANYWAY == 0)
        ]
        if lost:
            log.info("ringing again for %d unclaimed tasks of %s", len(lost), queue)
            missed = await _ring(publisher, lost)
            DOORBELLS_AGAIN.labels(queue).inc(len(lost) - len(missed))


async def _ring(publisher: Publisher, rows: Sequence[TaskRow]) -> list[Doorbell]:
    """Rings for all of them, and returns those that were not rung."""
    doorbells = [Doorbell(row.task_id, row.queue, row.actor) for row in rows]
    started = time.monotonic()
    missed = await (_ring_traced(publisher, doorbells, rows) if tracing.is_on() else publisher.ring(doorbells))
    DISPATCH_CONFIRM_SECONDS.observe(time.monotonic() - started)
    DISPATCH_BATCH.observe(len(doorbells))
    _count((bell for bell in doorbells if bell not in missed) if missed else doorbells, "confirmed")
    return missed


async def _ring_traced(publisher: Publisher, doorbells: Sequence[Doorbell], rows: Sequence[TaskRow]) -> list[Doorbell]:
    """Each under a span of its task's trace."""
    spans = {row.task_id: tracing.ringing(row.task_id, row.queue, row.traceparent) for row in rows}
    missed = await publisher.ring(doorbells)
    for bell in missed:
        spans[bell.task_id].fail("not-rung")
    for span in spans.values():
        span.end()
    return missed


def _count(doorbells: Iterable[Doorbell], result: str) -> None:
    for queue, number in Counter(bell.queue for bell in doorbells).items():
        DOORBELLS.labels(queue, result).inc(number)

"""One round of dispatching: look at the providers, admit, reserve, ring, give back what could not be rung."""

import logging
from collections.abc import Sequence
from uuid import uuid4

from services.dispatcher.backlog import RetryBacklog
from services.dispatcher.publisher import Doorbell, Publisher
from shared.admission import admit
from shared.db import Database, Row
from shared.settings import Settings
from shared.store import providers

log = logging.getLogger("dispatcher")

FIRST_CHECK_SECONDS = 2
"""A row that was rung for and is still unclaimed after this long may have lost its doorbell."""

CHECKS_BEFORE_RINGING_ANYWAY = 6
"""After so many checks a row is rung for again though messages wait in its queue: its own may not be among them."""


async def dispatch_due(db: Database, publisher: Publisher, backlog: RetryBacklog, settings: Settings) -> bool:
    """Rings for everything that may start now; true when there may be more to do at once."""
    again = False
    views = await providers.look(db, heard_within_seconds=settings.lease_seconds)
    for view in await backlog.fill_in(db, views):
        admission = admit(view)
        if admission.nobody:
            continue
        token = uuid4()
        rows = await providers.reserve(db, view, admission, token)
        if not rows:
            again = True  # somebody else was quicker: what was seen is no longer true
            continue
        missed = await publisher.ring(_doorbells(rows))
        if missed:
            await providers.give_back(db, token, [bell.task_id for bell in missed])
    return again


async def ring_again(db: Database, publisher: Publisher, settings: Settings) -> None:
    """Rings again for rows that nobody has claimed although no message waits for a worker: theirs were lost."""
    silent = await providers.check_doorbells(
        db, first_after_seconds=FIRST_CHECK_SECONDS, at_most_seconds=settings.safety_poll_seconds
    )
    for queue in {row["queue"] for row in silent}:
        ready = await publisher.ready_messages(queue)
        lost = [
            row
            for row in silent
            if row["queue"] == queue and (ready == 0 or row["doorbell_count"] % CHECKS_BEFORE_RINGING_ANYWAY == 0)
        ]
        if lost:
            log.info("ringing again for %d unclaimed tasks of %s", len(lost), queue)
            await publisher.ring(_doorbells(lost))


def _doorbells(rows: Sequence[Row]) -> list[Doorbell]:
    return [Doorbell(row["task_id"], row["queue"], row["actor"]) for row in rows]

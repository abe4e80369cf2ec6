"""Workflows: what the end of a task left to be done for them, said and done; and their counts, counted anew."""

import logging

from windlass.services.janitor.rhythms import UNTIL_CALLED
from windlass.shared import db
from windlass.shared.store.workflows import approvals, controlling

log = logging.getLogger("janitor")

AGAIN_SECONDS = 0.1
"""When somebody was in the way."""


async def look_after_workflows(connection: db.Database) -> float:
    """Makes the tasks of lists that are there, goes on with what was begun, and says what has changed; returns how long
    to wait for the next."""
    try:
        while await controlling.expand_next(connection):
            pass
        while await controlling.advance_next(connection):
            pass
        await say_what_happened(connection)
    except db.CONTENDED:
        return AGAIN_SECONDS
    return UNTIL_CALLED


async def say_what_happened(connection: db.Database) -> None:
    """One line for each change of a workflow's status."""
    while events := await controlling.say_what_happened(connection):
        for each in sorted(events, key=lambda event: (event.workflow_id, event.seq)):
            log.info(
                "workflow %s (%s, of %s): %s, now %s",
                each.workflow_id, each.name, each.user_id, each.type, each.data.get("status"),
            )  # fmt: skip


async def expire_approvals(pool: db.Database) -> None:
    expired = await approvals.expire(pool)
    if expired:
        log.info("%d tasks were cancelled, for nobody had approved of them in time", len(expired))


async def count_drift(pool: db.Database) -> int:
    """How many workflows were not what their tasks are; they are now."""
    drifted = await controlling.drifted(pool)
    for workflow_id in drifted:
        await controlling.mend(pool, workflow_id)
    if drifted:
        named = ", ".join(map(str, drifted[:5]))
        log.error("%d workflows had other counts than their tasks, and were mended: %s", len(drifted), named)
    return len(drifted)

"""Stale leases: tasks whose worker stopped renewing are taken back and tried again."""

import logging

from shared.db import Database
from shared.store import tasks

log = logging.getLogger("janitor")


async def recover_stale(db: Database) -> int:
    """Takes back every task whose lease has run out; returns how many."""
    recovered = 0
    while rows := await tasks.stall(db):
        for row in rows:
            log.warning("task %s: its worker %s was lost; now %s", row["task_id"], row["worker_id"], row["status"])
        recovered += len(rows)
    return recovered

"""Stale leases: tasks whose worker stopped renewing are taken back and tried again."""

import logging
from datetime import datetime

from windlass.shared.db import Database
from windlass.shared.process import log_context
from windlass.shared.retry_delays import BUILT_IN, RetrySettings
from windlass.shared.store import tasks

log = logging.getLogger("janitor")


async def recover_stale(
    db: Database, *, heard_at: datetime, patience_seconds: float, retries: RetrySettings = BUILT_IN
) -> None:
    """Takes back every task whose lease has run out, unless Postgres has been out of reach meanwhile."""
    while rows := await tasks.stall(db, heard_at=heard_at, patience_seconds=patience_seconds, retries=retries):
        for row in rows:
            known = {"task_id": row.task_id, "attempt": row.attempt, "traceparent": row.traceparent}
            with log_context.about(worker=row.worker_id, **known):
                log.warning("task %s: its worker %s was lost; now %s", row.task_id, row.worker_id, row.status)

"""What a worker does first for those before it: proven dead, they need no lease to end before their tasks go on."""

import logging
from collections.abc import Mapping
from typing import Any

from windlass.shared.db import Database
from windlass.shared.process import log_context
from windlass.shared.retry_delays import BUILT_IN, RetrySettings
from windlass.shared.store import tasks
from windlass.shared.store.operating import workers

log = logging.getLogger("actors")


async def take_back(
    db: Database, predecessors: Mapping[str, dict[str, Any]], retries: RetrySettings = BUILT_IN
) -> None:
    """All their tasks, in as many calls as it takes; `predecessors` has, by worker, the proof of its death."""
    if not predecessors:
        return
    while rows := await tasks.stall(db, expired_for_seconds=None, proofs=predecessors, retries=retries):
        for row in rows:
            with log_context.about(task_id=row.task_id, attempt=row.attempt, traceparent=row.traceparent):
                log.warning("task %s: taken back from %s; now %s", row.task_id, row.worker_id, row.status)
    await workers.mark_lost(db, list(predecessors), reason="died")

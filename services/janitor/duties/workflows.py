"""Workflows: approvals that were not answered in time, and a check of the counts."""

import logging

from windlass.shared import db
from windlass.shared.features.workflows import operations
from windlass.shared.store.workflows import approvals

log = logging.getLogger("janitor")


async def expire_approvals(pool: db.Database) -> None:
    expired = await approvals.expire(pool)
    if expired:
        log.info("approvals_expired tasks=%d", len(expired))


async def count_drift(pool: db.Database) -> int:
    """How many workflows have other counts than their tasks. The orchestrator counts these again."""
    drifted = await operations.count_drift(pool)
    if drifted:
        named = ",".join(map(str, drifted[:5]))
        log.error("workflow_drift workflows=%d first=%s", len(drifted), named)
    return len(drifted)

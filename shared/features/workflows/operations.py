"""What callers ask of a workflow. Each call counts its tasks first."""

import logging
from enum import StrEnum
from uuid import UUID

from windlass.shared import db as postgres
from windlass.shared.db import Database
from windlass.shared.features.transactions import Session
from windlass.shared.features.workflows import queries
from windlass.shared.features.workflows.queries import Changed
from windlass.shared.features.workflows.turn import Turn, in_turn
from windlass.shared.store.rows import WorkflowRow
from windlass.shared.store.workflows import reading

log = logging.getLogger("workflows")


class Resumption(StrEnum):
    """Which tasks of an escalated workflow are revived when it is resumed."""

    NONE = "none"
    FAILED = "failed"
    FAILED_AND_DOWNSTREAM = "failed-and-downstream"


async def cancel(db: Database, workflow_id: UUID, *, reports: list[Turn] | None = None) -> Changed | None:
    """Once this returns, no task of the workflow starts. A workflow that is over is left as it is."""

    async def act(turn: Turn) -> Changed:
        was = await turn.cancel()
        return await queries.changed(turn.db, workflow_id, was)

    return await in_turn(db, workflow_id, act, reports=reports)


async def resume(db: Database, workflow_id: UUID, mode: Resumption) -> Changed | None:
    """A workflow that is not escalated is left as it is: `was` has its status."""

    async def lock_keys(session: Session) -> None:
        if mode != Resumption.NONE:
            await queries.lock_keys_of_failed(session, workflow_id, mode)

    async def act(turn: Turn) -> Changed:
        was = await turn.resume(mode, revives=mode != Resumption.NONE)
        return await queries.changed(turn.db, workflow_id, was)

    return await in_turn(db, workflow_id, act, before=lock_keys)


async def settle(db: Database, workflow_id: UUID, *, reports: list[Turn] | None = None) -> None:
    """Handles what has happened to the workflow."""
    await in_turn(db, workflow_id, Turn.settle, reports=reports)


async def caught_up(db: Database, features: Database, workflow_id: UUID) -> WorkflowRow | None:
    """The workflow after everything that has happened until now. Without pending rows this locks nothing. If handling
    them fails, it is returned as it was, and the orchestrator tries again."""
    row = await reading.get(db, workflow_id)
    if row is None or not row.is_behind:
        return row
    try:
        await settle(features, workflow_id)
    except postgres.AWAY_OR_BUSY:
        raise
    except Exception:
        log.exception("workflow_catch_up_failed workflow=%s", workflow_id)
    return await reading.get(db, workflow_id)


async def count_drift(db: Database, *, at_most: int = 500, changed_within_seconds: float = 3600) -> list[UUID]:
    """Workflows whose counts differ from their tasks; there must be none. The orchestrator counts them again."""
    drifted = await queries.drifted(db, at_most=at_most, changed_within_seconds=changed_within_seconds)
    await queries.mark(db, drifted, "drift")
    return drifted


async def restore(db: Database, *, step: int) -> None:
    """After a restore: event numbers go beyond every number that a client may have seen, and workflows that are not
    over are counted again."""
    await queries.mark(db, await queries.advance_numbers(db, step), "restore")

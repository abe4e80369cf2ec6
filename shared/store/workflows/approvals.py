"""Tasks that wait for a person's word: asked about, decided once, or expired."""

from collections.abc import Sequence
from enum import StrEnum
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.metrics import counting
from windlass.shared.metrics.counting import Counts
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetch, fetchrow
from windlass.shared.store.rows import TaskRow


class Decision(StrEnum):
    APPROVED = "approved"
    REJECTED = "rejected"


class Decided(TaskRow):
    """The task as it is now, why nothing was decided if so, and the tasks that have ended by it."""

    refusal: str | None
    ended: list[Counts]


class Expired(Record):
    task_id: UUID | None
    ended: list[Counts] | None


async def decide(db: Database, task_id: UUID, decision: Decision, *, by: str, comment: str | None) -> Decided | None:
    query = f"SELECT * FROM {named('decide_task')}($1, $2, $3, $4)"  # noqa: S608 - a name of our own
    row = await fetchrow(db, Decided, query, task_id, decision, by, comment)
    if row is not None:
        counting.ended(row.ended)
    return row


async def expire(db: Database) -> list[UUID]:
    """Cancels those that nobody has answered in time, each in a transaction of its own; returns them."""
    expired: list[UUID] = []
    query = f"SELECT * FROM {named('expire_approval')}($1)"  # noqa: S608 - a name of our own
    while True:
        row = await fetchrow(db, Expired, query, expired[-1] if expired else UUID(int=0))
        assert row is not None, "a function with outputs has a row"
        if row.task_id is None:
            return expired
        counting.ended(row.ended or [])
        expired.append(row.task_id)


async def waiting(db: Database, *, owner: str | None, after: UUID | None, limit: int) -> Sequence[TaskRow]:
    """Those that wait for a word, the oldest task first; of one user, or of all."""
    return await fetch(
        db,
        TaskRow,
        """
        SELECT task_id, user_id, workflow_id, workflow_key, approval, asked_at, ask_expires_at FROM tasks
        WHERE status = 'blocked' AND asked_at IS NOT NULL AND ($1::text IS NULL OR user_id = $1)
          AND ($2::uuid IS NULL OR task_id > $2)
        ORDER BY task_id LIMIT $3
        """,
        owner,
        after,
        limit,
    )


COUNTED = 1000
"""So many are counted; there are "at least" that many where there are more."""


async def count_waiting(db: Database, *, owner: str | None) -> dict[str, int]:
    """How many wait for a person: tasks for a word, and workflows to be resumed or cancelled."""
    row = await db.fetchrow(
        """
        SELECT (SELECT count(*) FROM (
                    SELECT 1 FROM tasks WHERE status = 'blocked' AND asked_at IS NOT NULL
                      AND ($1::text IS NULL OR user_id = $1) LIMIT $2) AS asked) AS approval,
               (SELECT count(*) FROM (
                    SELECT 1 FROM workflows WHERE status = 'escalated' AND ($1::text IS NULL OR user_id = $1)
                    LIMIT $2) AS stopped) AS "escalated-workflow"
        """,
        owner,
        COUNTED,
    )
    assert row is not None, "a count always answers"
    return dict(row)

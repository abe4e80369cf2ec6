"""What is done to workflows from outside, and what the janitor goes on with."""

from enum import StrEnum
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.metrics import counting
from windlass.shared.metrics.counting import Counts
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetch, fetchrow
from windlass.shared.store.rows import WorkflowEventRow, WorkflowRow

CHANNEL = "windlass_workflows"
TASKS_AT_ONCE = 500
MOST_ELEMENTS = 1000
"""Of a list that becomes one task for each."""


class Resumption(StrEnum):
    """What of an escalated workflow gets a new life when it goes on."""

    NONE = "none"
    FAILED = "failed"
    FAILED_AND_DOWNSTREAM = "failed-and-downstream"


class Changed(WorkflowRow):
    """The workflow as it is now, what it was, and the tasks that have ended by it."""

    was: str
    ended: list[Counts]


class Resumed(Changed):
    revived: list[Counts]


class Expanded(Record):
    """A node that has become so many tasks, or could not."""

    node_id: UUID
    children: int
    actor: str
    provider: str


class Advanced(Record):
    workflow_id: UUID
    ended: list[Counts]


class SaidEvent(WorkflowEventRow):
    """With what its log line names."""

    name: str
    user_id: str


async def cancel(db: Database, workflow_id: UUID) -> Changed | None:
    row = await fetchrow(db, Changed, f"SELECT * FROM {named('cancel_workflow')}($1)", workflow_id)  # noqa: S608 - a name of our own
    if row is not None:
        counting.ended(row.ended)
    return row


async def resume(db: Database, workflow_id: UUID, mode: Resumption) -> Resumed | None:
    """One that is not escalated is left as it is: `was` says so."""
    query = f"SELECT * FROM {named('resume_workflow')}($1, $2)"  # noqa: S608 - a name of our own
    row = await fetchrow(db, Resumed, query, workflow_id, mode)
    if row is not None:
        counting.revived(row.revived)
        counting.ended(row.ended)
    return row


async def advance_next(db: Database, *, at_most: int = TASKS_AT_ONCE) -> bool:
    """The next page of what the status of a workflow demands of its tasks; false when there is none. Any number may do
    this at once."""
    row = await fetchrow(db, Advanced, f"SELECT * FROM {named('advance_next')}($1)", at_most)  # noqa: S608 - our own
    if row is not None:
        counting.ended(row.ended)
    return row is not None


async def expand_next(db: Database, *, at_most: int = MOST_ELEMENTS) -> bool:
    """Makes the tasks of the next node whose list is there; false when there is none. Of several who try, one does."""
    row = await fetchrow(db, Expanded, f"SELECT * FROM {named('expand_next')}($1)", at_most)  # noqa: S608 - our own
    if row is not None:
        counting.submitted([row] * row.children)
    return row is not None


async def say_what_happened(db: Database, *, at_most: int = 200) -> list[SaidEvent]:
    """Changes of status that nobody has told in a log yet: each is given to one who asks, once."""
    return await fetch(
        db,
        SaidEvent,
        """
        WITH unsaid AS (
            SELECT workflow_id, seq FROM workflow_events WHERE NOT said
            ORDER BY workflow_id, seq LIMIT $1 FOR UPDATE SKIP LOCKED
        )
        UPDATE workflow_events e SET said = true FROM unsaid u, workflows w
        WHERE e.workflow_id = u.workflow_id AND e.seq = u.seq AND w.workflow_id = e.workflow_id
        RETURNING e.workflow_id, e.seq, e.type, e.at, e.data, w.name, w.user_id
        """,
        at_most,
    )


async def drifted(db: Database, *, at_most: int = 500, changed_within_seconds: float = 3600) -> list[UUID]:
    """Workflows whose counts are not what their tasks are, counted anew: there must be none."""
    rows = await db.fetch(
        f"SELECT * FROM {named('drifted_workflows')}(now() - make_interval(secs => $1), $2)",  # noqa: S608 - our own
        changed_within_seconds,
        at_most,
    )
    return [row[0] for row in rows]


async def mend(db: Database, workflow_id: UUID) -> None:
    await db.execute(f"SELECT {named('mend_workflow')}($1)", workflow_id)


async def restore(db: Database, *, step: int) -> None:
    """After a restore: no number that anybody may have seen is given again."""
    await db.execute(f"SELECT {named('restore_workflows')}($1)", step)

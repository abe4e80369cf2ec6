"""Changes to many tasks: accepted as a row, done in chunks, each chunk exactly once whoever runs it."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from windlass.shared.concerns import OWNERS
from windlass.shared.db import Database
from windlass.shared.filters import Filter
from windlass.shared.metrics import counting
from windlass.shared.metrics.counting import Counts
from windlass.shared.sql_fragments import words
from windlass.shared.states import CANCEL, REVIVE
from windlass.shared.store.functions import named
from windlass.shared.store.reading.by_queue import queues_of
from windlass.shared.store.reading.listing import CLOCK_SKEW_SECONDS, Selection, first_id_at
from windlass.shared.store.record import fetch, fetchrow
from windlass.shared.store.rows import BulkJobRow, TaskRow

CHANNEL = "windlass_bulk"
"""Called when there is a new job."""

CHUNK = 200
ACTIONS = {"retry": REVIVE, "cancel": CANCEL}


class Advanced(BulkJobRow):
    """A job that was moved on, with the tasks that were revived and have ended by it."""

    revived: list[Counts]
    ended: list[Counts]


def changeable(
    action: str,
    wanted: Filter,
    *,
    owner: str | None = None,
    accepted_at: datetime | None = None,
    queues: Sequence[str] | None = None,
) -> Selection:
    """The tasks that the action can change, of those that a filter means and that were there when it was accepted.

    What is to be revived must have ended before, too: a task that dies meanwhile has its own reason. The queues are
    those of `queues_of`.
    """
    sources = [state for state in ACTIONS[action].sources if wanted.status is None or state in wanted.status]
    selection = Selection(replace(wanted, status=sources), owner=owner, queues=queues)
    if action == "cancel":
        selection.add("NOT cancel_requested")
    if accepted_at is not None:
        selection.add("created_at <= {}", accepted_at)
        selection.add("task_id < {}", first_id_at(accepted_at, CLOCK_SKEW_SECONDS))
        if action == "retry":
            selection.add("completed_at <= {}", accepted_at)
    return selection


async def count(db: Database, action: str, wanted: Filter, *, owner: str | None) -> int:
    """How many tasks the action would change now."""
    selection = changeable(action, wanted, owner=owner, queues=await queues_of(db, wanted))
    counts = [f"(SELECT count(*) FROM tasks WHERE {where})" for where in selection.branches()]  # noqa: S608 - see there
    if not counts:
        return 0
    number: int = await db.fetchval(f"SELECT {' + '.join(counts)}", *selection.values)
    return number


async def accept(
    db: Database,
    bulk_id: UUID,
    action: str,
    wanted: Filter,
    *,
    matched: int,
    user_id: str,
    scope_user_id: str | None,
    canary: int | None = None,
) -> BulkJobRow:
    """Stores a job and calls the janitors: from here on it is done, by one of them or another."""
    row = await fetchrow(
        db,
        BulkJobRow,
        f"""
        WITH job AS (
            INSERT INTO bulk_jobs (bulk_id, action, filter, user_id, scope_user_id, matched, canary)
            VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING *
        ), called AS (
            SELECT pg_notify('{CHANNEL}', '')
        )
        SELECT job.* FROM job, called
        """,  # noqa: S608 - a name of our own
        bulk_id,
        action,
        stored(wanted),
        user_id,
        scope_user_id,
        matched,
        canary,
    )
    assert row is not None, "an insert that returns has a row"
    return row


def stored(wanted: Filter) -> dict[str, Any]:
    return {name: value for name, value in asdict(wanted).items() if value is not None}


async def get(db: Database, bulk_id: UUID) -> BulkJobRow | None:
    return await fetchrow(db, BulkJobRow, "SELECT * FROM bulk_jobs WHERE bulk_id = $1", bulk_id)


async def unfinished(db: Database) -> list[BulkJobRow]:
    return await fetch(
        db,
        BulkJobRow,
        "SELECT * FROM bulk_jobs WHERE state IN ('running', 'waiting-for-canary') ORDER BY bulk_id LIMIT 100",
    )


async def next_chunk(db: Database, job: BulkJobRow) -> list[UUID]:
    """The next tasks of a job, oldest first."""
    wanted = msgspec.convert(job.filter, Filter)
    selection = changeable(
        job.action,
        wanted,
        owner=job.scope_user_id,
        accepted_at=job.created_at,
        queues=await queues_of(db, wanted),
    )
    if job.last_task_id is not None:
        selection.add("task_id > {}", job.last_task_id)
    if not selection.branches():
        return []
    most = CHUNK if job.canary is None or job.last_task_id is not None else min(CHUNK, job.canary)
    statement = selection.page("task_id", order="ASC", limit=most)
    return [row.task_id for row in await fetch(db, TaskRow, statement, *selection.values)]


async def advance(db: Database, job: BulkJobRow, chunk: list[UUID]) -> Advanced | None:
    """Does a chunk and moves the job on; none when somebody else has moved it meanwhile. Tasks that a feature owns are
    not revived."""
    row = await advance_in(db, job, chunk)
    if row is not None:
        count_advanced(row)
    return row


async def advance_in(db: Database, job: BulkJobRow, chunk: list[UUID], *, put_back: int = 0) -> Advanced | None:
    """The same within a transaction, in which the owners of so many tasks put them back. Count the row after the
    commit."""
    query = f"SELECT * FROM {named('advance_bulk')}($1, $2, $3, $4)"  # noqa: S608 - a name of our own
    return await fetchrow(db, Advanced, query, job.bulk_id, job.last_task_id, chunk, put_back)


def count_advanced(row: Advanced) -> None:
    counting.revived(row.revived)
    counting.ended(row.ended)


async def owned(db: Database, chunk: Sequence[UUID]) -> list[UUID]:
    """Those of the tasks that a feature owns."""
    query = f"""
        SELECT t.task_id FROM unnest($1::uuid[]) AS one(task_id)
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = one.task_id OFFSET 0) AS t
        WHERE t.concerns & {int(OWNERS)} <> 0
    """  # noqa: S608 - a number
    return [row["task_id"] for row in await db.fetch(query, list(chunk))]


async def lock(db: Database, job: BulkJobRow, chunk: Sequence[UUID]) -> bool:
    """Locks what `advance_bulk` locks before any task: keys, then the job. Returns whether the chunk is still to be
    done."""
    await db.execute(f"SELECT {named('lock_keys_of')}($1)", list(chunk))
    query = (
        "SELECT state = 'running' AND last_task_id IS NOT DISTINCT FROM $2 FROM bulk_jobs WHERE bulk_id = $1 FOR UPDATE"
    )
    found: bool | None = await db.fetchval(query, job.bulk_id, job.last_task_id)
    return bool(found)


async def stop(db: Database, bulk_id: UUID, *, reason: str) -> None:
    """It cannot go on."""
    await db.execute(
        "UPDATE bulk_jobs SET state = 'stopped', reason = $2, updated_at = clock_timestamp() WHERE bulk_id = $1",
        bulk_id,
        reason,
    )


async def judge_canaries(db: Database, bulk_id: UUID) -> BulkJobRow | None:
    """Lets a job go on when all its canaries have completed, stops it when one has failed; none while it waits."""
    return await fetchrow(
        db,
        BulkJobRow,
        f"""
        WITH canary AS (
            SELECT count(*) FILTER (WHERE t.status = 'completed') AS completed, count(*) AS all_of_them,
                   min(t.task_id::text || ' is ' || t.status || coalesce(': ' || (t.error ->> 'message'), ''))
                       FILTER (WHERE t.status IN {words(REVIVE.sources)}) AS failed
            FROM bulk_jobs b JOIN tasks t ON t.task_id = ANY (b.canary_ids) WHERE b.bulk_id = $1
        )
        UPDATE bulk_jobs b SET
            state = CASE WHEN canary.failed IS NULL THEN 'running' ELSE 'stopped' END,
            reason = 'the canary ' || canary.failed, updated_at = clock_timestamp()
        FROM canary
        WHERE b.bulk_id = $1 AND b.state = 'waiting-for-canary'
          AND (canary.failed IS NOT NULL OR canary.completed = canary.all_of_them)
        RETURNING b.*
        """,  # noqa: S608 - the states' own words
        bulk_id,
    )

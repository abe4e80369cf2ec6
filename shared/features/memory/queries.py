"""The statements of memory: what it reads of ended tasks, and what it writes."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from uuid_utils.compat import uuid7

from windlass.shared.db import Database
from windlass.shared.features.memory.rules import LONGEST_TEXT
from windlass.shared.store.record import Record, fetch

CHANNEL = "windlass_memory"
"""Wakes the janitor that gathers new events into embedding jobs."""


class MovedTask(Record):
    """A task at one of its moves. Of its texts only the beginnings, however large they are."""

    task_id: UUID
    seq: int
    attempt: int
    user_id: str
    actor: str
    provider: str
    subagent_type: str | None
    project_id: str | None
    workflow_id: str | None
    request: str
    outcome: str
    error: dict[str, Any] | None
    usage: dict[str, Any] | None


class NewEvent(NamedTuple):
    task: MovedTask
    life: int
    status: str
    title: str
    text: str
    data: dict[str, Any]
    at: datetime


class JobChange(NamedTuple):
    task_id: UUID
    state: str
    error: dict[str, Any] | None
    at: datetime


async def moved_tasks(db: Database, moves: Iterable[tuple[UUID, int]]) -> dict[tuple[UUID, int], MovedTask]:
    """By task and the number of the move's event. A task that has moved again since may have another attempt, error and
    usage, so these are those of the event."""
    wanted = list(moves)
    found = await fetch(
        db,
        MovedTask,
        f"""
        SELECT t.task_id, m.seq, t.user_id, t.actor, t.provider, t.project_id, t.workflow_id,
               CASE WHEN t.actor = 'agent' THEN t.payload ->> 'subagent_type' END AS subagent_type,
               left(btrim(coalesce(t.payload ->> 'prompt', t.payload ->> 'content', t.payload ->> 'text',
                                   t.payload::text)), {LONGEST_TEXT}) AS request,
               left(coalesce(
                   CASE jsonb_typeof(t.result)
                       WHEN 'string' THEN t.result #>> '{{}}'
                       WHEN 'object' THEN coalesce(t.result ->> 'summary', t.result ->> 'answer',
                           t.result ->> 'output', t.result ->> 'text', t.result ->> 'result')
                   END, t.result::text, ''), {LONGEST_TEXT}) AS outcome,
               CASE WHEN t.last_seq = m.seq THEN t.attempt ELSE coalesce(e.attempt, t.attempt) END AS attempt,
               CASE WHEN t.last_seq = m.seq THEN t.error ELSE e.data -> 'error' END AS error,
               CASE WHEN t.last_seq = m.seq THEN t.usage ELSE coalesce(e.data -> 'usage_so_far', t.usage) END AS usage
        FROM unnest($1::uuid[], $2::int[]) AS m(task_id, seq)
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = m.task_id OFFSET 0) AS t
        LEFT JOIN task_events e ON e.task_id = m.task_id AND e.seq = m.seq AND t.last_seq <> m.seq
        """,  # noqa: S608 - constants
        [task_id for task_id, _ in wanted],
        [seq for _, seq in wanted],
    )
    return {(row.task_id, row.seq): row for row in found}


async def write_events(db: Database, events: Sequence[NewEvent]) -> None:
    """One for each life of a task; the first one stays. Their ids are in the order of the ends, by Postgres' clock."""
    await db.executemany(
        """
        INSERT INTO agent_events (
            event_id, task_id, life, attempt, user_id, actor, provider, subagent_type, project_id, workflow_id,
            status, title, text, data, at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
        ON CONFLICT (task_id, life) DO NOTHING
        """,
        [
            (
                _id_at(event.at), event.task.task_id, event.life, event.task.attempt, event.task.user_id,
                event.task.actor, event.task.provider, event.task.subagent_type, event.task.project_id,
                event.task.workflow_id, event.status, event.title, event.text, event.data, event.at,
            )
            for event in events
        ],
    )  # fmt: skip
    await db.execute("SELECT pg_notify($1, '')", CHANNEL)


def _id_at(moment: datetime) -> UUID:
    return uuid7(nanoseconds=int(moment.timestamp() * 1_000_000_000))


async def change_jobs(db: Database, changes: Sequence[JobChange]) -> None:
    """A newer change stays: an older build changes jobs in the transaction of the move."""
    await db.executemany(
        "UPDATE embedding_jobs SET state = $2, error = $3, updated_at = $4 WHERE task_id = $1 AND updated_at <= $4",
        changes,
    )

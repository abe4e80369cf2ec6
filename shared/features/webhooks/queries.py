"""The statements that write deliveries: what they read of tasks, endpoints and keys, and what they write."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from windlass.shared.db import Database, as_json
from windlass.shared.features.webhooks.bodies import LARGEST_RESULT
from windlass.shared.features.webhooks.rules import Rights
from windlass.shared.store.access.keys import LIVING
from windlass.shared.store.record import Record, fetch


class Candidate(Record):
    """An endpoint that may receive an event."""

    webhook_id: UUID
    user_id: str
    scope: str
    events: list[str]
    filter: dict[str, Any]
    state: str
    created_at: datetime


class Standing(Record):
    """An endpoint whose deliveries may have to wait."""

    webhook_id: UUID
    state: str
    has_waiting: bool


class Written(Record):
    """A delivery that was written now, and the task that will carry it."""

    delivery_id: UUID
    webhook_id: UUID
    task_id: UUID
    type: str


class _Keys(Record):
    user_id: str
    everything: bool
    its_own: bool


async def moved_tasks(db: Database, moves: Iterable[tuple[UUID, int]]) -> dict[tuple[UUID, int], dict[str, Any]]:
    """By task and the number of the move's event: what a body contains. A task that has moved again since may have
    other columns; its usage and the start of its attempt are those of the move."""
    wanted = list(moves)
    found = await db.fetch(
        f"""
        SELECT m.seq, t.task_id, t.actor, t.task_type, t.provider, t.retry_count, t.max_retries, t.priority, t.user_id,
               t.tags, t.project_id, t.workflow_id, t.workflow_run_id, t.interaction_id, t.workflow_key,
               t.parent_task_id, t.dedupe_key, t.created_at, t.webhook_id, e.attempt, e.at AS event_at,
               e.data AS event_data,
               CASE WHEN octet_length(t.result::text) <= {LARGEST_RESULT} THEN t.result::text END AS result_text,
               CASE WHEN t.last_seq = m.seq THEN t.usage ELSE coalesce(e.data -> 'usage_so_far', t.usage) END AS usage,
               CASE WHEN t.last_seq = m.seq THEN t.started_at ELSE (
                   SELECT c.at FROM task_events c
                   WHERE c.task_id = m.task_id AND c.seq < m.seq AND c.type = 'claim' ORDER BY c.seq DESC LIMIT 1
               ) END AS started_at
        FROM unnest($1::uuid[], $2::int[]) AS m(task_id, seq)
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = m.task_id OFFSET 0) AS t
        LEFT JOIN task_events e ON e.task_id = m.task_id AND e.seq = m.seq
        """,  # noqa: S608 - constants
        [task_id for task_id, _ in wanted],
        [seq for _, seq in wanted],
    )
    return {(row["task_id"], row["seq"]): dict(row) for row in found}


async def candidates(
    db: Database, *, owners: Iterable[str], types: Iterable[str], named: Iterable[UUID]
) -> list[Candidate]:
    """Endpoints that subscribe to one of these types and may concern one of these owners, and those that tasks name."""
    kinds = {f"{each.partition('.')[0]}.*" for each in types}
    return await fetch(
        db,
        Candidate,
        """
        SELECT w.webhook_id, w.user_id, w.scope, w.events, w.filter, w.state, w.created_at FROM webhooks w
        WHERE w.listens AND w.events && $2 AND (w.scope = 'all' OR w.user_id = ANY ($1))
        UNION ALL
        SELECT w.webhook_id, w.user_id, w.scope, w.events, w.filter, w.state, w.created_at FROM webhooks w
        WHERE w.webhook_id = ANY ($3) AND w.deleted_at IS NULL
        """,
        list(owners),
        [*types, *kinds],
        list(named),
    )


async def rights_of(db: Database, users: Iterable[str]) -> dict[str, Rights]:
    """By user: what its keys allow it to read now. A user without such a key is not in it."""
    found = await fetch(
        db,
        _Keys,
        f"""
        SELECT k.user_id, bool_or(k.role = 'admin') AS everything, bool_or(k.role = 'user') AS its_own
        FROM api_keys k WHERE k.user_id = ANY ($1) AND {LIVING} GROUP BY k.user_id
        """,  # noqa: S608 - constants
        list(users),
    )
    return {row.user_id: Rights(row.everything, row.its_own) for row in found}


async def standings(db: Database, webhook_ids: Sequence[UUID]) -> dict[UUID, Standing]:
    """The state of endpoints that were not enabled when they were read, except for deleted ones. Their rows are shared
    until the end of the transaction: a change of the state waits for it, and then sees the new deliveries."""
    if not webhook_ids:
        return {}
    await db.execute(
        "SELECT 1 FROM webhooks WHERE webhook_id = ANY ($1) ORDER BY webhook_id FOR SHARE", list(webhook_ids)
    )
    found = await fetch(
        db,
        Standing,
        """
        SELECT w.webhook_id, w.state, EXISTS (
            SELECT 1 FROM deliveries d WHERE d.webhook_id = w.webhook_id AND d.state = 'waiting'
        ) AS has_waiting FROM webhooks w WHERE w.webhook_id = ANY ($1) AND w.deleted_at IS NULL
        """,
        list(webhook_ids),
    )
    return {row.webhook_id: row for row in found}


async def write_deliveries(
    db: Database, events: Sequence[Mapping[str, Any]], deliveries: Sequence[tuple[UUID, UUID, int, bool, UUID]]
) -> list[Written]:
    """One body for each event, whose places count from 1, and its deliveries: id, endpoint, place of the event, whether
    the task names the endpoint, and carrier. A delivery that exists already stays as it is."""
    return await fetch(
        db,
        Written,
        """
        WITH event AS MATERIALIZED (
            SELECT e.* FROM jsonb_to_recordset($1::text::jsonb)
                AS e(place int, body text, type text, subject text, life int, seq bigint)
        ), bodies AS (
            INSERT INTO webhook_bodies (body) SELECT e.body FROM event e ORDER BY e.place RETURNING body_id
        ), numbered AS (
            SELECT bodies.body_id, row_number() OVER (ORDER BY bodies.body_id) AS place FROM bodies
        )
        INSERT INTO deliveries (delivery_id, webhook_id, body_id, type, subject, life, seq, named, task_id)
        SELECT d.delivery_id, d.webhook_id, n.body_id, e.type, e.subject, e.life, e.seq, d.named, d.task_id
        FROM unnest($2::uuid[], $3::uuid[], $4::int[], $5::boolean[], $6::uuid[])
            AS d(delivery_id, webhook_id, place, named, task_id)
        JOIN event e ON e.place = d.place JOIN numbered n ON n.place = d.place
        ORDER BY d.delivery_id
        ON CONFLICT (webhook_id, subject, life, seq) DO NOTHING
        RETURNING delivery_id, webhook_id, task_id, type
        """,
        as_json(events),
        *(list(column) for column in zip(*deliveries, strict=True)),
    )

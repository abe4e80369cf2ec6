"""The statements of schedules. Everything that writes needs the schedule's lock."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from windlass.shared.db import Database, as_json
from windlass.shared.features.webhooks.bodies import utc
from windlass.shared.features.webhooks.publishing import publish
from windlass.shared.store.functions import named
from windlass.shared.store.record import fetchrow
from windlass.shared.store.rows import ScheduleEventRow
from windlass.shared.store.schedules import CHANNEL
from windlass.shared.store.schedules.reading import Read


class NameTaken(Exception):
    """The owner has another schedule of that name."""


LOCK = """
SELECT s.*, coalesce($2::timestamptz, clock_timestamp()) AS read_at FROM schedules s
WHERE s.schedule_id = $1 {condition} FOR NO KEY UPDATE {skip}
"""
AS_SEEN = """AND s.deleted_at IS NULL AND s.state = 'active' AND s.version = $3 AND s.last_due_at = $4
AND s.next_at = $5"""


async def lock(db: Database, schedule_id: UUID, now: datetime | None = None) -> Read | None:
    """Waits for another transaction that has it. Returns deleted schedules, too."""
    return await fetchrow(db, Read, LOCK.format(condition="", skip=""), schedule_id, now)


async def lock_as_seen(db: Database, seen: Read, now: datetime) -> Read | None:
    """Returns nothing if another transaction has it, or if it was changed or fired since it was read."""
    query = LOCK.format(condition=AS_SEEN, skip="SKIP LOCKED")
    return await fetchrow(db, Read, query, seen.schedule_id, now, seen.version, seen.last_due_at, seen.next_at)


async def has_key(db: Database, owner: str) -> bool:
    """Whether the owner has a key to act with. Ask under the schedule's lock."""
    found: bool = await db.fetchval(f"SELECT {named('has_a_key')}($1)", owner)
    return found


async def has_pending(db: Database, feature: str, schedule_id: UUID) -> bool:
    """Whether the outbox has rows of this schedule."""
    query = "SELECT EXISTS (SELECT 1 FROM outbox WHERE feature = $1 AND subject = $2)"
    found: bool = await db.fetchval(query, feature, schedule_id)
    return found


COLUMNS = (
    "name", "cron", "every_seconds", "timezone", "target", "kind", "prepared", "overlap", "catch_up",
    "catch_up_window_seconds", "jitter_seconds", "pause_after_failures", "state", "pause_reason", "pause_note",
    "failures", "anchor_at", "last_due_at", "next_due_at", "next_at", "declared_by",
)  # fmt: skip
"""What a change of a schedule may set."""


async def insert(db: Database, schedule_id: UUID, fields: Mapping[str, Any]) -> None:
    """Raises NameTaken."""
    names = [name for name in ("user_id", *COLUMNS) if name in fields]
    places = ", ".join(f"${number}" for number in range(2, len(names) + 2))
    made = await db.fetchval(
        f"""
        INSERT INTO schedules (schedule_id, {", ".join(names)}, created_at)
        VALUES ($1, {places}, ${names.index("last_due_at") + 2})
        ON CONFLICT (user_id, name) WHERE deleted_at IS NULL DO NOTHING RETURNING schedule_id
        """,  # noqa: S608 - columns of our own
        schedule_id,
        *(fields[name] for name in names),
    )
    if made is None:
        raise NameTaken


async def update(db: Database, row: Read, fields: Mapping[str, Any], *, deletes: bool = False) -> Read:
    """A change that makes what was planned before void. Raises NameTaken."""
    names = [name for name in COLUMNS if name in fields]
    changes = "".join(f"{name} = ${number}, " for number, name in enumerate(names, 3))
    deleted = "deleted_at = clock_timestamp()," if deletes else ""
    try:
        changed = await fetchrow(
            db,
            Read,
            f"""
            UPDATE schedules s SET {changes} {deleted} version = s.version + 1 WHERE s.schedule_id = $1
            RETURNING s.*, $2::timestamptz AS read_at
            """,  # noqa: S608 - columns of our own
            row.schedule_id,
            row.read_at,
            *(fields[name] for name in names),
        )
    except asyncpg.UniqueViolationError:
        raise NameTaken from None
    assert changed is not None, "it is locked"
    return changed


async def advance(
    db: Database, row: Read, reached: datetime, next_due_at: datetime | None, next_at: datetime | None
) -> Read:
    """Up to here every due time has its row."""
    changed = await fetchrow(
        db,
        Read,
        """
        UPDATE schedules s SET
            last_due_at = $2, next_due_at = CASE s.state WHEN 'active' THEN $3::timestamptz END,
            next_at = CASE s.state WHEN 'active' THEN $4::timestamptz END
        WHERE s.schedule_id = $1 RETURNING s.*, $5::timestamptz AS read_at
        """,
        row.schedule_id,
        reached,
        next_due_at,
        next_at,
        row.read_at,
    )
    assert changed is not None, "it is locked"
    return changed


async def set_failures(db: Database, row: Read, failures: int) -> Read:
    query = "UPDATE schedules s SET failures = $2 WHERE schedule_id = $1 RETURNING s.*, $3::timestamptz AS read_at"
    changed = await fetchrow(db, Read, query, row.schedule_id, failures, row.read_at)
    assert changed is not None, "it is locked"
    return changed


async def note(db: Database, row: Read, kind: str, data: Mapping[str, Any]) -> tuple[Read, ScheduleEventRow]:
    """Appends to the schedule's history."""
    changed = await fetchrow(
        db,
        Read,
        """
        UPDATE schedules s SET last_seq = s.last_seq + 1, updated_at = clock_timestamp() WHERE s.schedule_id = $1
        RETURNING s.*, $2::timestamptz AS read_at
        """,
        row.schedule_id,
        row.read_at,
    )
    assert changed is not None, "it is locked"
    event = await fetchrow(
        db,
        ScheduleEventRow,
        """
        INSERT INTO schedule_events (schedule_id, seq, type, data) VALUES ($1, $2, $3, $4::text::jsonb) RETURNING *
        """,
        row.schedule_id,
        changed.last_seq,
        kind,
        as_json({name: value for name, value in data.items() if value is not None}),
    )
    assert event is not None, "it was just written"
    return changed, event


async def publish_failure(db: Database, schedule_id: UUID, due_at: datetime, seq: int) -> None:
    """`schedule.failed`, for webhooks. Their filters match what the schedule starts."""
    row = await db.fetchrow(
        """
        SELECT s.name, s.user_id, s.kind, s.prepared, s.failures, s.state, s.pause_reason, r.due_at, r.outcome,
               left(r.reason, 1000) AS reason, r.ended_as, r.task_id, r.workflow_id, r.project_id, r.run_id, e.at
        FROM schedules s
        JOIN schedule_runs r ON r.schedule_id = s.schedule_id AND r.due_at = $2
        JOIN schedule_events e ON e.schedule_id = s.schedule_id AND e.seq = $3
        WHERE s.schedule_id = $1
        """,
        schedule_id,
        due_at,
        seq,
    )
    assert row is not None, "they were just written"
    prepared = row["prepared"]
    started = {name: row[name] for name in ("task_id", "workflow_id", "project_id", "run_id")}
    await publish(
        db,
        "schedule.failed",
        schedule_id,
        seq=seq,
        at=row["at"],
        owner=row["user_id"],
        about={
            "project_id": row["project_id"],
            "workflow_id": row["workflow_id"],
            "actor": prepared.get("actor"),
            "tags": prepared.get("tags") or prepared.get("workflow", {}).get("tags") or [],
        },
        data={
            "schedule_id": schedule_id,
            **{name: row[name] for name in ("name", "user_id", "kind", "outcome", "reason", "ended_as")},
            "due_at": utc(row["due_at"]),
            **started,
            **{name: row[name] for name in ("failures", "state", "pause_reason")},
            "seq": seq,
        },
    )


async def wake(db: Database) -> None:
    """The orchestrators look when the next schedule is due."""
    await db.execute("SELECT pg_notify($1, '')", CHANNEL)

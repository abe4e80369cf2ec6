"""Agent events as they are read, and taken out again."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.store.record import fetch, fetchrow
from windlass.shared.store.rows import AgentEventRow

SHOWN = (
    "event_id, task_id, life, attempt, user_id, actor, provider, subagent_type, project_id, workflow_id, status, "
    "title, text, data, at"
)
FILTERS = ("user_id", "task_id", "actor", "status", "subagent_type", "project_id", "workflow_id")


async def get(db: Database, event_id: UUID) -> AgentEventRow | None:
    query = f"SELECT {SHOWN} FROM agent_events WHERE event_id = $1"  # noqa: S608 - written here
    return await fetchrow(db, AgentEventRow, query, event_id)


async def newest(
    db: Database, wanted: Mapping[str, Any], *, owner: str | None, before: UUID | None, limit: int
) -> list[AgentEventRow]:
    """One user's, or all; what is none in `wanted` does not matter."""
    values: list[Any] = [limit]
    conditions = ["true"]
    for name, value in [("user_id", owner), *((name, wanted.get(name)) for name in FILTERS)]:
        if value is not None:
            values.append(value)
            conditions.append(f"{name} = ${len(values)}")
    if before is not None:
        values.append(before)
        conditions.append(f"event_id < ${len(values)}")
    query = f"SELECT {SHOWN} FROM agent_events WHERE {' AND '.join(conditions)} ORDER BY event_id DESC LIMIT $1"  # noqa: S608
    return await fetch(db, AgentEventRow, query, *values)


async def delete(db: Database, event_id: UUID) -> None:
    """With its vectors, in one statement. A job that would still bring one finds nothing to bring it for."""
    await db.execute(
        """
        WITH gone AS (DELETE FROM agent_events WHERE event_id = $1)
        DELETE FROM embeddings WHERE event_id = $1
        """,
        event_id,
    )

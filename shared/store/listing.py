"""Lists of tasks, newest first, by any combination of filters."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from uuid import UUID

from shared.db import Database, Row


@dataclass(frozen=True)
class Filter:
    """Which tasks; what is none does not matter."""

    status: Sequence[str] | None = None
    actor: str | None = None
    provider: str | None = None
    lane: str | None = None
    user_id: str | None = None
    tag: Sequence[str] | None = None
    project_id: str | None = None
    workflow_id: str | None = None
    workflow_run_id: str | None = None
    interaction_id: str | None = None
    parent_task_id: UUID | None = None
    error_type: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    updated_after: datetime | None = None


CONDITIONS = {
    "status": "status = ANY ({})",
    "tag": "tags @> {}::text[]",
    "error_type": "error ->> 'type' = {}",
    "created_after": "created_at > {}",
    "created_before": "created_at < {}",
    "updated_after": "updated_at > {}",
}


async def newest(db: Database, wanted: Filter, *, before: UUID | None, limit: int) -> list[Row]:
    """A page of tasks older than the last one that the reader has seen."""
    conditions: list[str] = []
    values: list[object] = []
    for each in fields(wanted):
        if (value := getattr(wanted, each.name)) is not None:
            values.append(value)
            conditions.append(CONDITIONS.get(each.name, each.name + " = {}").format(f"${len(values)}"))
    if before is not None:
        values.append(before)
        conditions.append(f"task_id < ${len(values)}")
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    # Only names from the dataclass above and numbered placeholders are put together here.
    return await db.fetch(f"SELECT * FROM tasks {where} ORDER BY task_id DESC LIMIT {int(limit)}", *values)  # noqa: S608

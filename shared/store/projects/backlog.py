"""What is done to a project's backlog; each returns why not, if it did not."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from windlass.shared.db import Database, as_json
from windlass.shared.store.functions import named


async def add(db: Database, project_id: UUID, items: Sequence[dict[str, Any]]) -> str | None:
    """Each `{item_id, title, given, task}`, behind all that are there."""
    query = f"SELECT {named('add_items')}($1, $2::text::jsonb)"
    return await _refusal(db, query, project_id, as_json(list(items)))


async def change(
    db: Database,
    project_id: UUID,
    item_id: UUID,
    changes: dict[str, Any],
    *,
    before: UUID | None = None,
    after: UUID | None = None,
) -> str | None:
    """`changes` has what is to be another: `title`, and `given` with `task`."""
    query = f"SELECT {named('change_item')}($1, $2, $3::text::jsonb, $4, $5)"
    return await _refusal(db, query, project_id, item_id, as_json(changes), before or after, before is not None)


async def skip(db: Database, project_id: UUID, item_id: UUID) -> str | None:
    return await _refusal(db, f"SELECT {named('skip_item')}($1, $2)", project_id, item_id)


async def requeue(db: Database, project_id: UUID, item_id: UUID) -> str | None:
    return await _refusal(db, f"SELECT {named('requeue_item')}($1, $2)", project_id, item_id)


async def delete(db: Database, project_id: UUID, item_id: UUID) -> str | None:
    return await _refusal(db, f"SELECT {named('delete_item')}($1, $2)", project_id, item_id)


async def _refusal(db: Database, query: str, *values: object) -> str | None:
    refusal: str | None = await db.fetchval(query, *values)
    return refusal

"""The statements about a project's items. Everything that writes needs the project's lock."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from windlass.shared.db import Database, as_json
from windlass.shared.features.projects.queries import Item
from windlass.shared.store.functions import named


async def get(db: Database, project_id: UUID, item_id: UUID) -> Item | None:
    found = await db.fetchval(
        f"""
        SELECT {named("item_facts")}(i.item_id, i.position, i.title, i.state, i.last_run_id, i.task)
        FROM project_items i WHERE i.item_id = $2 AND i.project_id = $1
        """,  # noqa: S608 - a name of our own
        project_id,
        item_id,
    )
    return None if found is None else msgspec.convert(found, Item)


async def insert(db: Database, project_id: UUID, items: Sequence[dict[str, Any]]) -> list[Item]:
    """Behind all others, in their order."""
    found = await db.fetch(
        f"""
        WITH last AS (SELECT coalesce(max(i.position), 0) AS position FROM project_items i WHERE i.project_id = $1),
        added AS (
            INSERT INTO project_items (item_id, project_id, position, title, given, task)
            SELECT (item.it ->> 'item_id')::uuid, $1, last.position + 1024 * item.place, item.it ->> 'title',
                   item.it -> 'given', item.it -> 'task'
            FROM jsonb_array_elements($2::text::jsonb) WITH ORDINALITY AS item(it, place) CROSS JOIN last
            RETURNING project_items.*
        )
        SELECT {named("item_facts")}(i.item_id, i.position, i.title, i.state, i.last_run_id, i.task) AS item
        FROM added i ORDER BY i.position
        """,  # noqa: S608 - a name of our own
        project_id,
        as_json(list(items)),
    )
    return [msgspec.convert(row["item"], Item) for row in found]


async def neighbours(
    db: Database, project_id: UUID, moved: UUID, neighbour: UUID, *, is_before: bool
) -> tuple[Decimal, Decimal | None] | None:
    """The position of the neighbour, and of the item on its other side. None if the neighbour does not exist, or is the
    moved item."""
    far, order = ("<", "DESC") if is_before else (">", "ASC")
    row = await db.fetchrow(
        f"""
        SELECT i.position, (
            SELECT o.position FROM project_items o
            WHERE o.project_id = $1 AND o.position {far} i.position AND o.item_id <> $2
            ORDER BY o.position {order} LIMIT 1) AS beyond
        FROM project_items i WHERE i.item_id = $3 AND i.project_id = $1 AND i.item_id <> $2
        """,  # noqa: S608 - words of our own
        project_id,
        moved,
        neighbour,
    )
    return None if row is None else (row["position"], row["beyond"])


async def move(db: Database, item_id: UUID, place: Decimal) -> None:
    query = "UPDATE project_items SET position = $2, updated_at = clock_timestamp() WHERE item_id = $1"
    await db.execute(query, item_id, place)


async def renumber(db: Database, project_id: UUID) -> None:
    await db.execute(
        """
        UPDATE project_items i SET position = placed.place * 1024
        FROM (SELECT o.item_id, row_number() OVER (ORDER BY o.position) AS place
              FROM project_items o WHERE o.project_id = $1) AS placed
        WHERE i.item_id = placed.item_id
        """,
        project_id,
    )


async def edit(db: Database, item_id: UUID, changes: dict[str, Any]) -> None:
    """`title`, and `given` with `task`. The end of an earlier run does not apply to another task."""
    await db.execute(
        """
        UPDATE project_items i SET
            title = CASE WHEN c.changes ? 'title' THEN c.changes ->> 'title' ELSE i.title END,
            given = coalesce(c.changes -> 'given', i.given), task = coalesce(c.changes -> 'task', i.task),
            last_run_id = CASE WHEN c.changes ? 'task' THEN NULL ELSE i.last_run_id END,
            updated_at = clock_timestamp()
        FROM (SELECT $2::text::jsonb AS changes) AS c WHERE i.item_id = $1
        """,
        item_id,
        as_json(changes),
    )


async def set_state(db: Database, item_id: UUID, state: str, place: Decimal | None = None) -> None:
    """By request: the end of an earlier run does not apply to it any more."""
    await db.execute(
        """
        UPDATE project_items SET
            state = $2, position = coalesce($3, position), last_run_id = NULL, updated_at = clock_timestamp()
        WHERE item_id = $1
        """,
        item_id,
        state,
        place,
    )


async def delete(db: Database, item_id: UUID) -> None:
    await db.execute("DELETE FROM project_items WHERE item_id = $1", item_id)

"""What callers ask of a project's backlog. Each call returns why not, if it changed nothing. After a change the run has
the item that is first now, as long as no worker has claimed its task."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.features.projects import items, rules
from windlass.shared.features.projects.queries import Item
from windlass.shared.features.projects.turn import Turn, in_turn
from windlass.shared.project_states import ITEM, ItemState

ARCHIVED = "project-archived"


async def add(db: Database, project_id: UUID, added: Sequence[dict[str, Any]]) -> str | None:
    """Each `{item_id, title, given, task}`, behind all others."""

    async def act(turn: Turn) -> str | None:
        if turn.queue.archived_at is not None:
            return ARCHIVED
        for item in await items.insert(turn.db, project_id, added):
            turn.changes.note_item("add", item)
        await turn.rebind()
        return None

    return await in_turn(db, project_id, act)


async def change(
    db: Database,
    project_id: UUID,
    item_id: UUID,
    changes: dict[str, Any],
    *,
    before: UUID | None = None,
    after: UUID | None = None,
) -> str | None:
    """Moves an item, or changes its `title`, or its `given` with `task`."""
    neighbour = before or after

    async def act(turn: Turn, _item: Item) -> str | None:
        if neighbour is not None:
            beside = await items.neighbours(turn.db, project_id, item_id, neighbour, is_before=before is not None)
            if beside is None:
                return "neighbour-not-found"
            place = rules.place_beside(*beside, is_before=before is not None)
            await items.move(turn.db, item_id, place)
            if rules.needs_new_places(place):
                await items.renumber(turn.db, project_id)
            await _note(turn, "move", item_id)
        if changes:
            await items.edit(turn.db, item_id, changes)
            await _note(turn, "edit", item_id)
        return None

    return await _in_turn(db, project_id, item_id, act)


async def skip(db: Database, project_id: UUID, item_id: UUID) -> str | None:
    async def act(turn: Turn, item: Item) -> str | None:
        if item.state not in ITEM["skip"].sources:
            return "item-done"
        if item.state != ItemState.SKIPPED:
            await items.set_state(turn.db, item_id, ItemState.SKIPPED)
            await _note(turn, "skip", item_id)
        return None

    return await _in_turn(db, project_id, item_id, act)


async def requeue(db: Database, project_id: UUID, item_id: UUID) -> str | None:
    """It waits again, in its place."""

    async def act(turn: Turn, item: Item) -> str | None:
        if item.state != ItemState.WAITING:
            await items.set_state(turn.db, item_id, ItemState.WAITING)
            await _note(turn, "requeue", item_id)
        return None

    return await _in_turn(db, project_id, item_id, act)


async def delete(db: Database, project_id: UUID, item_id: UUID) -> str | None:
    async def act(turn: Turn, item: Item) -> str | None:
        turn.changes.note_item("delete", item)
        await items.delete(turn.db, item_id)
        return None

    return await _in_turn(db, project_id, item_id, act)


async def _in_turn(
    db: Database, project_id: UUID, item_id: UUID, act: Callable[[Turn, Item], Awaitable[str | None]]
) -> str | None:
    """Changes one item, unless a worker has its task."""

    async def checked(turn: Turn) -> str | None:
        item = await items.get(turn.db, project_id, item_id)
        if item is None:
            return "item-not-found"
        if turn.queue.archived_at is not None:
            return ARCHIVED
        if await turn.is_claimed(item_id):
            return "item-running"
        refusal = await act(turn, item)
        if refusal is None:
            await turn.rebind()
        return refusal

    return await in_turn(db, project_id, checked)


async def _note(turn: Turn, change: str, item_id: UUID) -> None:
    item = await items.get(turn.db, turn.queue.project_id, item_id)
    assert item is not None, "it was just changed"
    turn.changes.note_item(change, item)

"""The operations of the engine that webhooks use."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from windlass.shared.db import Database, as_json
from windlass.shared.holds import Hold
from windlass.shared.store.functions import named
from windlass.shared.store.tasks import changing

HOLD = Hold.ENDPOINT


async def submit(db: Database, tasks: Sequence[Mapping[str, Any]], *, held: Sequence[UUID] = ()) -> None:
    """Stores new tasks. Those in `held` wait for their endpoint from the beginning."""
    refusal = await db.fetchval(f"SELECT refusal FROM {named('store_tasks')}($1::text::jsonb)", as_json(tasks))  # noqa: S608
    assert refusal is None, "a carrier depends on nothing"
    if held:
        await hold(db, held)


async def lock_waiting(db: Database, task_ids: Sequence[UUID]) -> list[UUID]:
    """Those that still wait, once they are locked. All of them are locked by one statement, in the order of ids."""
    await db.execute("SELECT 1 FROM tasks WHERE task_id = ANY ($1) ORDER BY task_id FOR NO KEY UPDATE", list(task_ids))
    rows = await db.fetch(
        "SELECT task_id FROM tasks WHERE task_id = ANY ($1) AND status IN ('blocked', 'queued', 'retrying')",
        list(task_ids),
    )
    return [row["task_id"] for row in rows]


async def hold(db: Database, task_ids: Sequence[UUID]) -> int:
    return len(await changing.hold(db, task_ids, HOLD))


async def release(db: Database, task_ids: Sequence[UUID]) -> int:
    """Also those that wait for the endpoint's key: a younger delivery would overtake them. The claim parks it again if
    the key is full."""
    await changing.release(db, task_ids, Hold.KEY)
    return len(await changing.release(db, task_ids, HOLD))


async def cancel(db: Database, task_ids: Sequence[UUID], reason: str) -> int:
    query = f"SELECT coalesce(cardinality(changed), 0) FROM {named('cancel_tasks')}($1, $2)"  # noqa: S608
    cancelled: int = await db.fetchval(query, list(task_ids), reason)
    return cancelled

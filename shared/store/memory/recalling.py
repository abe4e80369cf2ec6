"""What an attempt was told of the past, written into its task's history."""

from typing import Any

from windlass.shared.db import Database, as_json
from windlass.shared.store.functions import named
from windlass.shared.store.tasks.claiming import Claimed
from windlass.shared.store.tasks.fencing import fence


async def note(db: Database, task: Claimed, recalled: dict[str, Any]) -> bool:
    """Once for each attempt; false when the task is no longer this attempt's."""
    query = f"SELECT {named('note_recall')}($1::text::jsonb, $2::text::jsonb)"
    noted: bool = await db.fetchval(query, fence(task), as_json(recalled))
    return noted

"""What a task gets whose payload refers to results of others."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetch, fetchrow

AT_ONCE_BYTES = 262_144
"""So much goes in one answer to many; whoever would come after it asks for itself."""


class Resolved(Record):
    """The payload with its references replaced; or where in it, and why, that cannot be."""

    input: dict[str, Any] | None
    pointer: str | None
    problem: str | None


async def resolve(db: Database, task_id: UUID, *, largest_bytes: int) -> Resolved:
    row = await fetchrow(db, Resolved, f"SELECT * FROM {named('resolve_input')}($1, $2)", task_id, largest_bytes)  # noqa: S608 - our own
    assert row is not None, "a function with outputs has a row"
    return row


class ResolvedOne(Resolved):
    task_id: UUID


async def resolve_many(db: Database, task_ids: Sequence[UUID], *, largest_bytes: int) -> dict[UUID, dict[str, Any]]:
    """What they get, as far as there is nothing wrong with it and all of it is not too much for one answer."""
    query = f"SELECT * FROM {named('resolve_inputs')}($1, $2, $3)"  # noqa: S608 - our own name
    rows = await fetch(db, ResolvedOne, query, task_ids, largest_bytes, AT_ONCE_BYTES)
    return {row.task_id: row.input for row in rows if row.input is not None}

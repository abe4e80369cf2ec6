"""Tasks that attempts of others make, each once for its place in their work."""

from typing import Any
from uuid import UUID

import msgspec

from windlass.shared.db import Database, as_json
from windlass.shared.metrics import counting
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetch, fetchrow
from windlass.shared.store.rows import TaskRow
from windlass.shared.store.tasks.claiming import Claimed
from windlass.shared.store.tasks.fencing import fence
from windlass.shared.store.tasks.submitting import Submission, UnknownDependency


class Child(Record):
    """The task at a place, or why there is none."""

    refusal: str | None
    """`lost`, `cancelled` or `unknown-dependency`."""
    missing: str | None
    child_id: UUID | None
    actor: str | None
    is_new: bool


async def submit_child(db: Database, parent: Claimed, place: str, submission: Submission) -> Child:
    """Its user, project, workflow and run are the parent's; repeating the call answers with the same child."""
    query = f"SELECT * FROM {named('submit_child')}($1::text::jsonb, $2, $3::text::jsonb)"  # noqa: S608 - a name of our own
    child = await fetchrow(db, Child, query, fence(parent), place, as_json(_without_user(submission)))
    assert child is not None, "a function with outputs has a row"
    if child.missing is not None:
        raise UnknownDependency(child.missing.split(","))
    if child.is_new:
        counting.submitted([submission])
    return child


async def children_of(db: Database, task_id: UUID) -> list[TaskRow]:
    """All that its attempts have made, the oldest first."""
    query = """
        SELECT t.* FROM task_children AS c JOIN tasks AS t ON t.task_id = c.child_id
        WHERE c.task_id = $1 ORDER BY t.task_id
    """
    return await fetch(db, TaskRow, query, task_id)


def _without_user(submission: Submission) -> dict[str, Any]:
    said: dict[str, Any] = msgspec.to_builtins(submission)
    return {name: value for name, value in said.items() if name != "user_id"}

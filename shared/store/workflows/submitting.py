"""New workflows: stored with all their tasks, or not at all."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from windlass.shared.db import Database, as_json
from windlass.shared.metrics import counting
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetchrow
from windlass.shared.store.tasks import Submission, UnknownDependency
from windlass.shared.store.tasks.submitting import refuse


class NewWorkflow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The workflow's own row, as the API accepted it."""

    workflow_id: UUID
    user_id: str
    name: str
    tags: Sequence[str] = ()
    failure_threshold: int | None = None
    idempotency_key: str | None = None
    idempotency_ttl_seconds: float = 86400
    body_hash: str | None = None


class NewNode(msgspec.Struct, frozen=True, kw_only=True):
    """What stands for the tasks of a `for_each`: where its list comes from, and what each of them will be."""

    node_id: UUID
    key: str
    source: UUID
    source_is_node: bool
    path: str
    template: dict[str, Any]


class Stored(Record):
    """The workflow that a submit came to: a new one, or the one that was stored under the same key before."""

    refusal: str | None
    missing: str | None
    workflow_id: UUID
    is_new: bool


async def submit(
    db: Database, workflow: NewWorkflow, nodes: Sequence[NewNode], submissions: Sequence[Submission]
) -> Stored:
    """All or nothing: once this returns it is durable."""
    query = f"SELECT * FROM {named('submit_workflow')}($1::text::jsonb, $2::text::jsonb, $3::text::jsonb)"  # noqa: S608 - a name of our own
    row = await fetchrow(db, Stored, query, as_json(workflow), as_json(nodes), as_json(submissions))
    assert row is not None, "it always answers"
    if row.refusal == "unknown-dependency":
        raise UnknownDependency(str(row.missing).split(","))
    if row.refusal is not None:
        refuse(row.refusal)
    if row.is_new:
        counting.submitted(submissions)
    return row

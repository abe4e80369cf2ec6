"""New tasks: stored all or none, by their keys where they have some."""

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn, TypeVar
from uuid import UUID

import msgspec

from windlass.shared.concurrency_keys import Part
from windlass.shared.db import Database, as_json
from windlass.shared.metrics import counting
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetch
from windlass.shared.store.rows import TaskRow


class UnknownDependency(Exception):
    """A task cannot depend on one that does not exist."""

    def __init__(self, missing: Sequence[str]) -> None:
        super().__init__(f"no such task: {', '.join(missing)}")
        self.missing = missing


class WorkflowCancelled(Exception):
    """A workflow that is being cancelled takes no more tasks, and gives none a new life."""


class ParentCancelled(Exception):
    """A task that somebody wants cancelled gets no more children."""

    def __init__(self, parents: Sequence[str]) -> None:
        super().__init__(f"cancelled, or about to be: {', '.join(parents)}")
        self.parents = parents


class KeyInFlight(Exception):
    """Somebody else is just submitting under the same key, and has not come to an end."""


class KeyReused(Exception):
    """The idempotency key belongs to another request."""


class Submission(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A new task, as the API accepted it. There are thousands in a second: a frozen dataclass takes ten times as long
    to make, and reading what is left empty would take Postgres as long as storing the rest. It knows the defaults."""

    task_id: UUID
    actor: str
    provider: str
    payload: dict[str, Any]
    user_id: str
    timeout_seconds: float
    task_type: str | None = None
    priority: int = 2
    max_retries: int = 3
    max_age_seconds: float | None = None
    run_at: str | None = None
    delay_seconds: float | None = None
    tags: Sequence[str] = ()
    project_id: str | None = None
    workflow_id: str | None = None
    workflow_run_id: str | None = None
    interaction_id: str | None = None
    parent_task_id: UUID | None = None
    depends_on: Sequence[UUID] = ()
    reach: str | None = None
    """Whose tasks it may depend on: one user's, or everybody's."""
    dedupe_key: str | None = None
    dedupe_ttl_seconds: float = 86400
    idempotency_key: str | None = None
    idempotency_ttl_seconds: float = 86400
    body_hash: str | None = None
    traceparent: str | None = None
    """The trace that its submit belongs to, while somebody traces."""
    retry_delays: dict[str, Any] | None = None
    concerns: int = 0
    """Whom its moves are told: bits of `shared/concerns.py`."""
    concurrency_key: str | None = None
    """So many of its actor's tasks with the same one run at once at its provider, at most."""
    concurrency_parts: Sequence[Part] = ()
    """Of what stands for the tasks of a `for_each`: what their keys are made of when their list is known."""
    request_id: str | None = None
    """What the client called the request that it came with."""
    workflow_key: str | None = None
    """What it is called in its workflow."""
    approval: dict[str, Any] | None = None
    """What a person is asked before it may start."""
    after_end: Sequence[UUID] = ()
    """Those of its dependencies that may end as they like."""
    depends_on_barriers: Sequence[UUID] = ()
    """The barriers that it waits for."""
    group_id: UUID | None = None
    """The group that it joins."""

    webhook_url: str | None = None
    """Where its end is told; with what an endpoint is made of, if its user has none for it."""
    webhook_owner: str | None = None
    """Whose endpoint it is: whoever submits, also for somebody else."""
    new_webhook_id: UUID | None = None
    new_webhook_secret: str | None = None
    """Sealed, in hexadecimal digits."""

    @property
    def has_keys(self) -> bool:
        return self.dedupe_key is not None or self.idempotency_key is not None

    @property
    def has_relatives(self) -> bool:
        """Postgres may refuse it for their sake, or for that of the group it joins."""
        return bool(self.depends_on or self.parent_task_id or self.group_id)


class SubmittedTask(TaskRow):
    """A task; or why none was stored, in a row with nothing else in it."""

    refusal: str | None
    missing: str | None


class KeyedTask(SubmittedTask):
    """A task, and whether an earlier submit has stored it."""

    deduplicated: bool


async def submit(db: Database, submissions: Sequence[Submission]) -> list[SubmittedTask]:
    """Stores all of them or none; once this returns they are durable. Their keys are not looked at."""
    rows = await _submit(db, SubmittedTask, f"SELECT * FROM {named('submit_tasks')}($1::text::jsonb)", submissions)  # noqa: S608 - a name of our own
    counting.stored(rows)
    return rows


async def submit_keyed(db: Database, submissions: Sequence[Submission]) -> list[KeyedTask]:
    """Stores those that were not submitted before under one of their keys, all or none; returns the task of each, in
    their order, with `deduplicated`."""
    query = f"SELECT * FROM {named('submit_keyed_tasks')}($1::text::jsonb)"  # noqa: S608 - a name of our own
    rows = await _submit(db, KeyedTask, query, submissions)
    counting.stored(row for row in rows if not row.deduplicated)
    return rows


class Stored(NamedTuple):
    """What a submission of a batch came to."""

    task_id: UUID
    deduplicated: bool
    webhook_id: UUID | None = None


async def submit_batch(db: Database, submissions: Sequence[Submission]) -> list[Stored]:
    """Stores all of them or none, by their keys where they have some; returns each one's id, whether it was there
    before, and the endpoint that it names."""
    if any(each.has_keys for each in submissions):
        keyed = await submit_keyed(db, submissions)
        return [Stored(row.task_id, row.deduplicated, row.webhook_id) for row in keyed]
    if any(each.has_relatives or each.webhook_url for each in submissions):
        rows = {row.task_id: row for row in await submit(db, submissions)}
        return [
            Stored(each.task_id, deduplicated=False, webhook_id=rows[each.task_id].webhook_id) for each in submissions
        ]
    query = f"SELECT cardinality(submitted) FROM {named('store_tasks')}($1::text::jsonb)"  # noqa: S608 - a name of our own
    await fetch(db, Record, query, as_json(submissions))
    counting.submitted(submissions)
    return [Stored(each.task_id, deduplicated=False) for each in submissions]


def refuse(refusal: str) -> NoReturn:
    match refusal:
        case "key-in-flight":
            raise KeyInFlight
        case "key-reused":
            raise KeyReused
        case "group-closed":
            raise WorkflowCancelled
    raise LookupError(f"no word for the refusal {refusal}")


Submitted = TypeVar("Submitted", bound=SubmittedTask)


async def _submit(
    db: Database, kind: type[Submitted], query: str, submissions: Sequence[Submission]
) -> list[Submitted]:
    rows = await fetch(db, kind, query, as_json(submissions))
    match rows[0].refusal if rows else None:
        case "unknown-dependency":
            raise UnknownDependency(str(rows[0].missing).split(","))
        case "parent-cancelled":
            raise ParentCancelled(str(rows[0].missing).split(","))
        case None:
            return rows
        case refusal:
            refuse(refusal)

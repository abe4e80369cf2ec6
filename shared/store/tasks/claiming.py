"""Attempts begin: a worker asks for tasks that it was rung for, and each is granted or refused."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.metrics import counting
from windlass.shared.metrics.seam import counted_afterwards
from windlass.shared.reasons import Reason
from windlass.shared.store import functions
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetch, fetchrow
from windlass.shared.store.rows import TaskRow
from windlass.shared.store.tasks.patience import BRIEFLY, patient

TRACEPARENT = "(SELECT t.traceparent FROM tasks t WHERE t.task_id = answer.task_id)"
"""Beside what a function answers: so that what it returns is the same for programs that know nothing of it."""


@dataclass(frozen=True)
class Claim:
    """A worker's wish to run a task, under a token of its own choosing."""

    task_id: UUID
    claim_token: UUID


@dataclass(frozen=True)
class Claimed:
    """An attempt that this worker owns until its lease ends."""

    task_id: UUID
    claim_token: UUID
    actor: str
    provider: str
    payload: dict[str, Any]
    checkpoint: Any
    attempt: int
    retry_count: int
    max_retries: int
    interrupt_count: int
    stall_count: int
    rate_limited_count: int
    timeout_seconds: float
    traceparent: str | None = None
    retry_delays: dict[str, Any] | None = None
    """Its own, by type of error, as its submitter has said."""
    concerns: int = 0
    """Whom its end is told: bits of `shared/concerns.py`."""
    job_open: bool = False
    """It goes on waiting for a job at its provider, and has taken no place in the provider's rate."""


GRANTED = frozenset(each.name for each in fields(Claimed)) - {"claim_token"}


@dataclass(frozen=True)
class Refused:
    """A claim that was not granted, and why."""

    task_id: UUID
    reason: Reason


class Answer(Record):
    """What becomes of a claim: how long a task that is granted has waited, and why another is not. Of one that is not
    there nothing else is known. What is granted itself goes on as it is, to `Claimed`."""

    task_id: UUID
    refusal: str | None
    actor: str | None
    provider: str | None
    waited_seconds: float | None


async def claim(
    db: Database,
    worker_id: str,
    claims: Sequence[Claim],
    lease_seconds: float,
    *,
    alone: bool = False,
    traced: bool = False,
    briefly: bool = False,
) -> list[Claimed | Refused]:
    """Takes the tasks that are waiting, due and have a slot free; the answers come in the order of the claims. Those
    that must run alone are for a process that does nothing else (`alone`). Their trace context, which never changes,
    is read only for who asks. For a lock it waits long, or only briefly."""
    tokens: dict[UUID, UUID] = {}
    for claim in claims:
        tokens.setdefault(claim.task_id, claim.claim_token)
    wanted = f"answer.*, {TRACEPARENT}" if traced else "answer.*"
    called = f"{named('claim_tasks')}($1, $2, $3, {patient('$4::float', briefly=briefly)}, $5) AS answer"
    query = f"SELECT {wanted} FROM {BRIEFLY if briefly else ''} {called}"  # noqa: S608 - all are written here
    rows = await fetch(db, Answer, query, list(tokens), list(tokens.values()), worker_id, lease_seconds, alone)
    rows_of = {row.task_id: row for row in rows}
    answers = [_answer(claim, tokens[claim.task_id], rows_of[claim.task_id]) for claim in claims]
    _count(answers, rows_of)
    return answers


@counted_afterwards
def _count(answers: Sequence[Claimed | Refused], rows_of: Mapping[UUID, Answer]) -> None:
    for answer in answers:
        row = rows_of[answer.task_id]
        if isinstance(answer, Refused):
            counting.claim_refused(row.actor, row.provider, answer.reason)
        else:
            counting.attempt_started(answer, answer.attempt, waited_seconds=row.waited_seconds or 0)


def _answer(claim: Claim, granted_to: UUID, row: Answer) -> Claimed | Refused:
    refusal = row.refusal
    if claim.claim_token != granted_to:  # a doubled doorbell: two claims of one task in one call
        refusal = refusal or Reason.RUNNING
    if refusal is not None:
        return Refused(claim.task_id, Reason.of_refusal(refusal))
    # A newer schema's function may say more than this version knows: old and new run side by side during an upgrade.
    return Claimed(claim_token=granted_to, **{name: said for name, said in row.items() if name in GRANTED})


async def next_alone(db: Database, queues: Sequence[str]) -> TaskRow | None:
    """The first of these queues that was rung for and must run alone: its `task_id` and `actor`."""
    return await fetchrow(
        db,
        TaskRow,
        f"""
        SELECT t.task_id, t.actor FROM (
            SELECT * FROM tasks WHERE status IN ('queued', 'retrying') AND doorbell_token IS NOT NULL OFFSET 0
        ) AS t
        WHERE {named("runs_alone")}(t.suspicion) AND t.queue = ANY ($1) AND t.level <= $2
        ORDER BY t.priority, t.available_at, t.task_id LIMIT 1
        """,  # noqa: S608 - a name of our own
        list(queues),
        functions.LEVEL,
    )

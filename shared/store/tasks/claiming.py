"""Attempts begin: a worker asks for what is next in its queues, or for a task that must run alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.metrics import counting
from windlass.shared.metrics.seam import counted_afterwards
from windlass.shared.reasons import Reason
from windlass.shared.sql_fragments import due
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetch, fetchrow
from windlass.shared.store.rows import TaskRow
from windlass.shared.store.tasks.patience import BRIEFLY, patient


def answered(*, traced: bool) -> str:
    """The columns of a claim's answer; the trace context stands beside them only for who asks."""
    return f"answer.*, {named('trace_of')}(answer.task_id) AS traceparent" if traced else "answer.*"


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
    is_guarded: bool = False
    """Something guards its provider, which whoever ends it and asks for the next has to lock."""
    user_id: str | None = None
    """Who has submitted it."""
    has_input: bool = False
    """What its payload refers to stands in it already."""


TAKEN = frozenset(each.name for each in fields(Claimed))
GRANTED = TAKEN - {"claim_token"}

MOST_TRIED = 64
"""Of each queue, lane and priority, when a claim failed and nobody knows why: as many as a worker asks for."""

MOST_SAID = 4000
"""Bytes in a notice; Postgres takes twice as many."""


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
    called = f"{named('claim_tasks')}($1, $2, $3, {patient('$4::float', briefly=briefly)}, $5) AS answer"
    query = f"SELECT {answered(traced=traced)} FROM {BRIEFLY if briefly else ''} {called}"  # noqa: S608 - all are written here
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
    if claim.claim_token != granted_to:  # two claims of one task in one call
        refusal = refusal or Reason.RUNNING
    if refusal is not None:
        return Refused(claim.task_id, Reason.of_refusal(refusal))
    # A newer schema's function may say more than this version knows: old and new run side by side during an upgrade.
    return Claimed(claim_token=granted_to, **{name: said for name, said in row.items() if name in GRANTED})


@dataclass(frozen=True)
class Ask:
    """A worker's wish for whatever is next in some of its queues: under tokens of its own choosing, one for each of its
    free places."""

    places: Mapping[str, int]
    """By queue, how many at most."""
    tokens: Sequence[UUID]
    aside: Sequence[UUID] = ()
    """Tasks that could not be claimed a moment ago: others go before them."""


@dataclass(frozen=True)
class Granted:
    """What a worker was given, and in which of the queues that it asked for more is due, or a suspect is."""

    claimed: list[Claimed]
    more: set[str]
    suspects: set[str]


class Next(Record):
    """A task that is granted, and how long it has waited; or, without a task, a word about a queue."""

    claim_token: UUID | None
    task_id: UUID | None
    waited_seconds: float | None
    queue: str
    word: str | None


async def claim_next(
    db: Database, worker_id: str, ask: Ask, lease_seconds: float, *, epoch: int = 0, traced: bool = False
) -> Granted:
    """Takes what is next in these queues, and may start, for as many places as there are tokens."""
    query = f"SELECT {answered(traced=traced)} FROM {named('claim_next')}($1, $2, $3, $4, $5, $6, $7) AS answer"  # noqa: S608 - ours
    return granted(await fetch(db, Next, query, *said_by(ask), worker_id, epoch, lease_seconds))


def said_by(ask: Ask) -> tuple[list[str], list[int], list[UUID], list[UUID]]:
    return list(ask.places), list(ask.places.values()), list(ask.tokens), list(ask.aside)


class Unclaimable(Record):
    task_id: UUID
    reason: str


async def unclaimable(db: Database, worker_id: str, queues: Sequence[str], *, aside: Sequence[UUID]) -> dict[UUID, str]:
    """Of those that are next in these queues, whom a claim cannot move, and why."""
    query = f"SELECT * FROM {named('unclaimable_tasks')}($1, $2, $3, $4)"  # noqa: S608 - our own name
    rows = await fetch(db, Unclaimable, query, list(queues), MOST_TRIED, list(aside), worker_id)
    return {row.task_id: row.reason for row in rows}


async def recall(
    db: Database, worker_id: str, tokens: Sequence[UUID], lease_seconds: float, *, epoch: int, traced: bool = False
) -> Granted:
    """What the worker runs under tokens whose call was not answered. What it asked for in an epoch before this one, and
    has not been given yet, it never will be: the call may still be on its way."""
    query = f"SELECT {answered(traced=traced)} FROM {named('recall_claims')}($1, $2, $3, $4) AS answer"  # noqa: S608 - both are ours
    return granted(await fetch(db, Next, query, worker_id, list(tokens), epoch, lease_seconds))


def granted(rows: Sequence[Next]) -> Granted:
    found = [row for row in rows if row.task_id is not None]
    claimed = [Claimed(**{name: said for name, said in row.items() if name in TAKEN}) for row in found]
    _count_started(claimed, [row.waited_seconds or 0 for row in found])
    words = {word: {row.queue for row in rows if row.word == word} for word in ("more", "suspect")}
    return Granted(claimed, words["more"], words["suspect"])


@counted_afterwards
def _count_started(claimed: Sequence[Claimed], waited: Sequence[float]) -> None:
    for attempt, seconds in zip(claimed, waited, strict=True):
        counting.attempt_started(attempt, attempt.attempt, waited_seconds=seconds)


async def next_alone(db: Database, queues: Sequence[str]) -> TaskRow | None:
    """The first of these queues that may start and must run alone: its `task_id` and `actor`."""
    return await fetchrow(
        db,
        TaskRow,
        f"""
        SELECT t.task_id, t.actor FROM (
            SELECT * FROM tasks WHERE suspicion >= 2 AND status IN ('queued', 'retrying') OFFSET 0
        ) AS t
        WHERE t.queue = ANY ($1) AND {due("now()")}
        ORDER BY t.priority, t.available_at, t.task_id LIMIT 1
        """,  # noqa: S608 - the states' own words
        list(queues),
    )

"""What an attempt says while it runs, and how it ends: kept as long as it owns its task."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from windlass.shared.db import Database, as_json
from windlass.shared.metrics import counting
from windlass.shared.store.flow_control.flow import Rules
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetch
from windlass.shared.store.tasks.claiming import Ask, Granted, Next, answered, granted, said_by
from windlass.shared.store.tasks.patience import BRIEFLY, patient


@dataclass(frozen=True)
class Report:
    """What a running attempt says, to be kept if it still owns the task."""

    task_id: UUID
    attempt: int
    claim_token: UUID
    number: int
    progress: dict[str, Any] | None = None
    checkpoint: Any = None
    events: Sequence[dict[str, Any]] = ()
    usage: dict[str, float] | None = None
    """What it has cost since the report before."""


class Ending(msgspec.Struct, frozen=True, omit_defaults=True):
    """How an attempt ended, as its owner decided; `events` are numbered before the end itself. Postgres knows the
    defaults, and need not read them."""

    task_id: UUID
    attempt: int
    claim_token: UUID
    transition: str
    result: Any = None
    error: dict[str, Any] | None = None
    exit_code: int | None = None
    delay_seconds: float = 0
    retry_cost: int = 0
    rate_limited: bool = False
    provider_failed: bool = False
    hopeless_if_others_pass: bool = False
    timeout_factor: float = 1
    progress: dict[str, Any] | None = None
    checkpoint: Any = None
    events: Sequence[dict[str, Any]] = ()
    proof: dict[str, Any] | None = None
    """What was done to the attempt's processes, as far as it had any: kept in the event of the end."""
    usage: dict[str, float] | None = None
    """What the attempt has cost, as far as somebody said so: added to what the task has cost before."""
    concerns: int = 0
    """The task's own, as its claim has said: some ends go in calls of their own."""


class Told(Record):
    """A task whose report was kept, or was `skipped` since somebody else has locked its row."""

    task_id: UUID
    skipped: bool


class Ended(Record):
    """What has become of a task, and how old it was at its end; those that were buried with it have no token."""

    claim_token: UUID | None
    status: str
    actor: str
    provider: str
    age_seconds: float | None


@dataclass(frozen=True)
class Heard:
    """What became of reports: whose task is still their own, and whose row somebody else has locked: to be offered
    again. The others have lost it."""

    kept: set[UUID]
    skipped: set[UUID]


async def report(db: Database, reports: Sequence[Report]) -> Heard:
    """Keeps progress, output, checkpoints and what they cost, and waits for nobody."""
    query = f"SELECT * FROM {named('report_tasks')}($1::text::jsonb, skip_locked => true)"  # noqa: S608 - our own name
    rows = await fetch(db, Told, query, as_json(reports))
    return Heard({row.task_id for row in rows if not row.skipped}, {row.task_id for row in rows if row.skipped})


async def end(db: Database, endings: Sequence[Ending], rules: Rules, *, briefly: bool = False) -> list[str | None]:
    """Ends attempts and returns each task's status after it, or none where it no longer belonged to the caller.

    What they say about their providers opens and closes breakers and pauses providers, by the rules. For a lock it
    waits long, or only briefly.
    """
    called = f"{named('end_tasks')}($1::text::jsonb, {patient('$2::text::jsonb', briefly=briefly)}) AS answer"
    query = f"SELECT answer.* FROM {BRIEFLY if briefly else ''} {called}"  # noqa: S608 - both are written here
    rows = await fetch(db, Ended, query, as_json(endings), as_json(rules))
    counting.attempts_ended(endings, rows)
    statuses = {row.claim_token: row.status for row in rows}
    return [statuses.get(ending.claim_token) for ending in endings]


class EndedOrNext(Ended, Next):
    """Of one call that ends attempts and asks for the next: what has become of a task, or one that is granted, or a
    word about a queue."""

    status: Any


async def end_and_next(  # noqa: PLR0917 - what `end` and `claim_next` are told
    db: Database,
    endings: Sequence[Ending],
    rules: Rules,
    worker_id: str,
    ask: Ask,
    lease_seconds: float,
    *,
    epoch: int = 0,
    traced: bool = False,
) -> tuple[list[str | None], Granted]:
    """As `end`, and then as `claim_next`, in one call: all of it happens or nothing."""
    function = named("end_and_next")
    arguments = f"$1::text::jsonb, {patient('$2::text::jsonb', briefly=False)}, $3, $4, $5, $6, $7, $8, $9"
    query = f"SELECT {answered(traced=traced)} FROM {function}({arguments}) AS answer"  # noqa: S608 - written here
    asked = (*said_by(ask), worker_id, epoch, lease_seconds)
    rows = await fetch(db, EndedOrNext, query, as_json(endings), as_json(rules), *asked)
    ended = [row for row in rows if row.status is not None]
    counting.attempts_ended(endings, ended)
    statuses = {row.claim_token: row.status for row in ended}
    return [statuses.get(each.claim_token) for each in endings], granted([row for row in rows if row.status is None])

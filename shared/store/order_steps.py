"""The steps of orders, many at once: each is refused or done for itself, and all that are done are in one commit."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from windlass.shared.db import Database, as_json
from windlass.shared.order_states import MOVES
from windlass.shared.store.functions import named
from windlass.shared.store.record import fetch
from windlass.shared.store.rows import GenerationRow
from windlass.shared.store.tasks import Claimed
from windlass.shared.store.tasks.fencing import fence_of
from windlass.shared.store.tasks.patience import BRIEFLY, patient


@dataclass(frozen=True)
class Intent:
    """What is about to be ordered; `request` without secrets."""

    generation_id: UUID
    operation: str
    request: dict[str, Any]
    callback_hash: str
    """The SHA-256 of the token in the callback's URL, as hex digits."""
    prompt_id: str | None = None
    source_data: Any = None


@dataclass(frozen=True)
class NewContent:
    """A file that is safe under its place."""

    content_id: UUID
    index: int
    provider_url: str
    media_type: str
    extension: str
    place: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True)
class OrderMove:
    """One of the moves in `shared/order_states.py`: as the attempt that owns the task, or, without one, after its end.
    `cost_usd` is what the order costs, for the move that makes it known."""

    task: Claimed | None
    generation_id: UUID
    name: str
    job_id: str | None = None
    response: Any = None
    contents: Sequence[NewContent] = ()
    cost_usd: float | None = None


class LatestOrder(GenerationRow):
    """An order, and how long ago it was intended, by Postgres' clock."""

    intended_seconds_ago: float


async def intend_each(
    db: Database, intents: Sequence[tuple[Claimed, Intent]], /, *, briefly: bool = False
) -> list[bool]:
    """Before the orders are sent. False for a task that is no longer its attempt's: then nothing may be sent."""
    steps = [{"fence": fence_of(task), "new": asdict(intent)} for task, intent in intents]
    return await _step(db, "intend_orders", steps, briefly=briefly)


async def move_each(db: Database, moves: Sequence[OrderMove], /, *, briefly: bool = False) -> list[bool]:
    """False for an order that does not stand where its move begins, or whose task is no longer the caller's."""
    return await _step(db, "move_orders", [_written(move) for move in moves], briefly=briefly)


async def latest_of_each(
    db: Database,
    task_ids: Sequence[UUID],
    /,
    *,
    briefly: bool = False,  # noqa: ARG001 - it waits for nobody
) -> list[LatestOrder | None]:
    """Each task's newest order, whatever became of it."""
    rows = await fetch(
        db,
        LatestOrder,
        """
        SELECT latest.*, extract(epoch FROM clock_timestamp() - latest.created_at)::float AS intended_seconds_ago
        FROM unnest($1::uuid[]) AS wanted (task_id) CROSS JOIN LATERAL (
            SELECT g.* FROM generations g WHERE g.task_id = wanted.task_id ORDER BY g.generation_id DESC LIMIT 1
        ) AS latest
        """,
        list(set(task_ids)),
    )
    found = {row.task_id: row for row in rows}
    return [found.get(task_id) for task_id in task_ids]


async def _step(db: Database, function: str, steps: Sequence[dict[str, Any]], *, briefly: bool) -> list[bool]:
    called = f"{named(function)}({patient('$1::text::jsonb', briefly=briefly)}) AS answers"
    query = f"SELECT answers FROM {BRIEFLY if briefly else ''} {called}"  # noqa: S608 - both are written here
    answers: list[bool] = await db.fetchval(query, as_json(steps))
    return answers


def _written(move: OrderMove) -> dict[str, Any]:
    chosen = MOVES[move.name]
    rule = {**asdict(chosen), "ends": chosen.ends, **({} if move.cost_usd is None else {"cost_usd": move.cost_usd})}
    return {
        "fence": None if move.task is None else fence_of(move.task),
        "generation_id": move.generation_id,
        "move": rule,
        "job_id": move.job_id,
        "response": move.response,
        "files": [asdict(each) for each in move.contents],
    }

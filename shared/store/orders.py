"""Orders for paid work: each step of an order's life is one fenced call, repeated without harm."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from windlass.shared.db import Database, as_json
from windlass.shared.metrics import counting
from windlass.shared.metrics.counting import Counts
from windlass.shared.order_states import MOVES
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetch, fetchrow
from windlass.shared.store.rows import ContentRow, GenerationRow
from windlass.shared.store.tasks import Claimed
from windlass.shared.store.tasks.fencing import fence


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


class OwnedContent(ContentRow):
    """A file, with whose it is and the task that it came of; none where its owner has brought it."""

    user_id: str
    task_id: UUID | None


class OrderWithContents(GenerationRow):
    """An order with its files, as JSON has them."""

    contents: list[dict[str, Any]]


class LatestOrder(GenerationRow):
    """An order, and how long ago it was intended, by Postgres' clock."""

    intended_seconds_ago: float


class AbandonedOrder(GenerationRow):
    """An order whose task has ended, and how long nothing has happened to it."""

    age_seconds: float
    task_status: str
    died_of: str | None
    """The type of the error that the task is dead of."""


class Revived(Record):
    """What has come back to life by an order, and what had to end all the same."""

    revived: list[Counts]
    ended: list[Counts]


class HeardOf(Revived):
    """The same, and the task that a callback is about."""

    task_id: UUID | None


async def latest(db: Database, task_id: UUID) -> LatestOrder | None:
    """The task's newest order, whatever became of it."""
    return await fetchrow(
        db,
        LatestOrder,
        """
        SELECT *, extract(epoch FROM clock_timestamp() - created_at)::float AS intended_seconds_ago
        FROM generations WHERE task_id = $1 ORDER BY generation_id DESC LIMIT 1
        """,
        task_id,
    )


async def intend(db: Database, task: Claimed, intent: Intent) -> bool:
    """Before the order is sent. False when the task is no longer this attempt's: then nothing may be sent."""
    query = f"SELECT {named('intend_order')}($1::text::jsonb, $2::text::jsonb)"
    intended: bool = await db.fetchval(query, fence(task), as_json(asdict(intent)))
    return intended


async def move(
    db: Database,
    task: Claimed | None,
    generation_id: UUID,
    name: str,
    *,
    job_id: str | None = None,
    response: Any = None,
    contents: Sequence[NewContent] = (),
    cost_usd: float | None = None,
) -> bool:
    """One of the moves in `shared/order_states.py`: as the attempt that owns the task, or, without one, after its end.
    `cost_usd` is what the order costs, for the move that makes it known. False when the order does not stand where the
    move begins, or the task is no longer the caller's."""
    chosen = MOVES[name]
    rule = {**asdict(chosen), "ends": chosen.ends, **({} if cost_usd is None else {"cost_usd": cost_usd})}
    moved: bool = await db.fetchval(
        f"SELECT {named('move_order')}($1::text::jsonb, $2, $3::text::jsonb, $4, $5::text::jsonb, $6::text::jsonb)",
        None if task is None else fence(task),
        generation_id,
        as_json(rule),
        job_id,
        None if response is None else as_json(response),
        as_json([asdict(each) for each in contents]),
    )
    return moved


async def hear(
    db: Database, body: Any, *, callback_hash: bytes | None = None, provider: str | None = None, job_id: str | None
) -> UUID | None:
    """Keeps a callback and wakes whoever waits, also from the dead; by the token's hash, or by a provider and its job's
    id. Returns the task that it is about, if there is one."""
    query = f"SELECT * FROM {named('hear_callback')}($1, $2, $3, $4::text::jsonb)"  # noqa: S608 - a name of our own
    heard = await fetchrow(db, HeardOf, query, callback_hash, provider, job_id, as_json(body))
    assert heard is not None, "it always answers"
    counting.revived(heard.revived)
    counting.ended(heard.ended)
    return heard.task_id


async def revive_lost(db: Database, generation_id: UUID) -> bool:
    """Brings back the task that died of this order, about which its provider has called back; false when it has not, or
    a person has to decide."""
    query = f"SELECT * FROM {named('revive_lost_order')}($1)"  # noqa: S608 - a name of our own
    row = await fetchrow(db, Revived, query, generation_id)
    if row is not None:
        counting.revived(row.revived)
        counting.ended(row.ended)
    return row is not None


async def provider_of_callback(db: Database, callback_hash: bytes) -> str | None:
    """Who may call back with the token of this hash; none when nobody may."""
    query = "SELECT provider FROM generations WHERE callback_hash = $1"
    provider: str | None = await db.fetchval(query, callback_hash)
    return provider


async def is_anothers(db: Database, provider: str, job_id: str, generation_id: UUID) -> bool:
    """Whether a job belongs to another order already: two tasks may have asked for the same thing."""
    known: bool = await db.fetchval(
        """
        SELECT EXISTS (
            SELECT 1 FROM generations WHERE provider = $1 AND provider_job_id = $2 AND generation_id <> $3)
        """,
        provider,
        job_id,
        generation_id,
    )
    return known


async def contents(db: Database, generation_id: UUID) -> list[ContentRow]:
    return await fetch(db, ContentRow, "SELECT * FROM contents WHERE generation_id = $1 ORDER BY index", generation_id)


async def content(db: Database, content_id: UUID) -> OwnedContent | None:
    """One file, with the `user_id` that it belongs to."""
    return await fetchrow(
        db,
        OwnedContent,
        """
        SELECT c.*, g.user_id, g.task_id FROM contents c JOIN generations g USING (generation_id)
        WHERE c.content_id = $1
        """,
        content_id,
    )


async def picture_for(db: Database, task_id: UUID, content_id: UUID) -> ContentRow | None:
    """A file to begin with, if it belongs to the task's user."""
    return await fetchrow(
        db,
        ContentRow,
        """
        SELECT c.* FROM contents c JOIN generations g USING (generation_id) JOIN tasks t ON t.user_id = g.user_id
        WHERE c.content_id = $1 AND t.task_id = $2
        """,
        content_id,
        task_id,
    )


@dataclass(frozen=True)
class WantedMedia:
    """Which generations: what is none does not matter."""

    workflow_run_id: str | None = None
    interaction_id: str | None = None
    provider: str | None = None
    user_id: str | None = None
    created_after: datetime | None = None


async def newest(db: Database, wanted: WantedMedia, *, before: UUID | None, limit: int) -> list[OrderWithContents]:
    """Generations, newest first, each with its `contents`. Only what is asked for stands in the statement: so each
    question has a plan of its own."""
    asked = {
        "g.workflow_run_id = {}": wanted.workflow_run_id,
        "g.interaction_id = {}": wanted.interaction_id,
        "g.provider = {}": wanted.provider,
        "g.user_id = {}": wanted.user_id,
        "g.created_at > {}": wanted.created_after,
        "g.generation_id < {}": before,
    }
    given = {condition: value for condition, value in asked.items() if value is not None}
    conditions = [each.format(f"${number}") for number, each in enumerate(given, start=2)]
    return await fetch(
        db,
        OrderWithContents,
        f"""
        SELECT g.*, coalesce((
            SELECT jsonb_agg(to_jsonb(c) ORDER BY c.index) FROM contents c WHERE c.generation_id = g.generation_id
        ), '[]') AS contents
        FROM generations g WHERE {" AND ".join(["true", *conditions])}
        ORDER BY g.generation_id DESC LIMIT $1
        """,  # noqa: S608 - the conditions above
        limit,
        *given.values(),
    )


async def abandoned(
    db: Database, providers: Sequence[str], *, again_after_seconds: float, at_most: int = 20
) -> list[AbandonedOrder]:
    """Orders that have not ended although their tasks have, each given to one caller for a while."""
    return await fetch(
        db,
        AbandonedOrder,
        """
        UPDATE generations g SET looked_at = clock_timestamp() WHERE g.generation_id IN (
            SELECT g.generation_id FROM generations g JOIN tasks t USING (task_id)
            WHERE g.provider = ANY ($1) AND g.status IN ('intended', 'open', 'fetching', 'unknown') AND NOT g.given_up
              AND t.completed_at IS NOT NULL
              AND (g.looked_at IS NULL OR g.looked_at < clock_timestamp() - make_interval(secs => $2))
            ORDER BY g.generation_id LIMIT $3 FOR UPDATE OF g SKIP LOCKED
        ) RETURNING g.*, extract(epoch FROM clock_timestamp() - g.updated_at)::float AS age_seconds,
            (SELECT t.status FROM tasks t WHERE t.task_id = g.task_id) AS task_status,
            (SELECT t.error ->> 'type' FROM tasks t WHERE t.task_id = g.task_id AND t.status = 'dead') AS died_of
        """,
        list(providers),
        again_after_seconds,
        at_most,
    )


async def give_up(db: Database, generation_id: UUID) -> None:
    """Nobody will ever know: the slot is given back, and nobody looks again."""
    await db.execute(f"SELECT {named('give_up_order')}($1)", generation_id)

"""Orders for paid work: each step of an order's life is one fenced call, repeated without harm."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from windlass.shared.db import Database, as_json
from windlass.shared.metrics import counting
from windlass.shared.metrics.counting import Counts
from windlass.shared.store.functions import named
from windlass.shared.store.order_steps import OrderMove, move_each
from windlass.shared.store.record import Record, fetch, fetchrow
from windlass.shared.store.rows import ContentRow, GenerationRow
from windlass.shared.store.tasks import Claimed


class OwnedContent(ContentRow):
    """A file, with whose it is and the task that it came of; none where its owner has brought it."""

    user_id: str
    task_id: UUID | None


class OrderWithContents(GenerationRow):
    """An order with its files, as JSON has them."""

    contents: list[dict[str, Any]]


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


async def move(db: Database, task: Claimed | None, generation_id: UUID, name: str, **facts: Any) -> bool:
    """One alone, as `move_each`; the facts are those of `OrderMove`."""
    (moved,) = await move_each(db, [OrderMove(task, generation_id, name, **facts)])
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

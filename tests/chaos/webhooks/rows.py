"""The tables of webhooks as the judge reads them, by statements of its own, with the receiver's books and what the
storm's witness has seen."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from tests.chaos.webhooks.books import Books


@dataclass(frozen=True)
class Subscribed:
    """An endpoint, and a move that it had subscribed to when the move was written, committed and handled."""

    webhook_id: str
    task_id: str
    """Or the workflow, or the project."""
    seq: int
    life: int
    type: str
    at: float


@dataclass(frozen=True)
class DeliveryRow:
    delivery_id: str
    webhook_id: str
    type: str
    subject: str
    life: int
    seq: int
    state: str
    reason: str | None
    task_id: str
    attempts: int
    body: str
    endpoint: str = "enabled"
    """The state of its endpoint."""
    written_at: float = 0.0


@dataclass(frozen=True)
class Entry:
    """One line of the receiver's books."""

    at: float
    path: str
    id: str
    status: int
    raw: str


@dataclass(frozen=True)
class Release:
    """A delivery's task was held because of its endpoint, and is no more."""

    delivery_id: str
    webhook_id: str
    at: float
    claimed_at: float | None
    """First, after that."""
    is_fresh: bool
    """It had not been tried, nor been parked for want of a place: others that have not go before it then."""


@dataclass(frozen=True)
class WebhookRows:
    subscribed: Sequence[Subscribed] = ()
    surmised: frozenset[tuple[str, str, int]] = frozenset()
    """Endpoint, task and seq of those that had subscribed at one of these moments at least."""
    deliveries: Sequence[DeliveryRow] = ()
    entries: Sequence[Entry] = ()
    releases: Sequence[Release] = ()


SUBSCRIBED = """
    SELECT webhook_id::text, task_id::text, seq, max(life) AS life, max(type) AS type,
           extract(epoch FROM max(at))::float AS at,
           count(DISTINCT moment) FILTER (WHERE moment <> 'handled') = 3 AS always
    FROM storm_heard GROUP BY webhook_id, task_id, seq
"""
DELIVERIES = """
    SELECT d.delivery_id::text, d.webhook_id::text, d.type, d.subject, d.life, d.seq, d.state, d.reason,
           d.task_id::text, d.attempts, b.body, w.state AS endpoint,
           extract(epoch FROM d.created_at)::float AS written_at
    FROM deliveries d JOIN webhook_bodies b USING (body_id) JOIN webhooks w USING (webhook_id) ORDER BY d.delivery_id
"""
RELEASES = """
    SELECT d.delivery_id::text, d.webhook_id::text, extract(epoch FROM r.at)::float AS at,
           (SELECT extract(epoch FROM min(c.at))::float FROM task_events c
            WHERE c.task_id = r.task_id AND c.type = 'claim' AND c.seq > r.seq) AS claimed_at,
           NOT EXISTS (
               SELECT 1 FROM task_events c WHERE c.task_id = r.task_id AND c.seq < r.seq
                 AND (c.type = 'claim' OR (c.type = 'hold' AND c.data ->> 'reason' = 'key'))) AS is_fresh
    FROM task_events r JOIN deliveries d ON d.task_id = r.task_id
    WHERE r.type = 'release' AND r.data ->> 'reason' = 'endpoint' ORDER BY d.delivery_id
"""


def read_webhooks(database_url: str, directory: Path | None) -> WebhookRows:
    """Nothing, where no storm has installed its witness."""
    return asyncio.run(_read(database_url, directory))


async def _read(database_url: str, directory: Path | None) -> WebhookRows:
    connection = await asyncpg.connect(database_url, timeout=30)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            if await connection.fetchval("SELECT to_regclass('public.storm_heard')") is None:
                return WebhookRows()
            heard = [dict(row) for row in await connection.fetch(SUBSCRIBED)]
            deliveries = [DeliveryRow(**dict(row)) for row in await connection.fetch(DELIVERIES)]
            releases = [Release(**dict(row)) for row in await connection.fetch(RELEASES)]
    finally:
        await connection.close()
    # Read last: what a row says has come is in the books by then.
    entries = [] if directory is None else [_entry(each) for each in Books(directory).read()]
    return WebhookRows(
        [Subscribed(**each) for each in heard if each.pop("always")],
        frozenset((each["webhook_id"], each["task_id"], each["seq"]) for each in heard),
        deliveries,
        entries,
        releases,
    )


def _entry(line: dict[str, Any]) -> Entry:
    return Entry(line["at"], line["path"], line["id"], line["status"], line["raw"])

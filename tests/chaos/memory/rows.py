"""The tables of memory as the judge reads them, by statements of its own."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import asyncpg


@dataclass(frozen=True)
class AgentEventRow:
    event_id: str
    task_id: str
    life: int
    status: str
    is_gathered: bool
    embedded: int
    """How many models have brought a vector of it."""


@dataclass(frozen=True)
class HandledRow:
    """An end of a task that the subscriber handled, as often as it did."""

    task_id: str
    life: int
    status: str


@dataclass(frozen=True)
class MemoryRows:
    concerned: frozenset[str] = frozenset()
    """Tasks whose ends are written down."""
    events: Sequence[AgentEventRow] = ()
    handled: Sequence[HandledRow] = ()
    models: int = 0
    """How many make vectors of new events."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """By event the failed job that it is listed in."""
    pending: int = 0
    """Rows of the outbox, of all features."""


CONCERNED = "SELECT task_id::text FROM tasks WHERE concerns & 8 <> 0 AND actor <> 'embed'"
EVENTS = """
    SELECT e.event_id::text, e.task_id::text, e.life, e.status, e.gathered_at IS NOT NULL AS is_gathered,
           (SELECT count(*)::int FROM embeddings v WHERE v.event_id = e.event_id AND v.vector IS NOT NULL) AS embedded
    FROM agent_events e
"""
FAILED = """
    SELECT unnest(event_ids)::text AS event_id, job_id::text FROM embedding_jobs
    WHERE state = 'failed' AND error IS NOT NULL
"""
MODELS = "SELECT count(*) FROM embedding_models WHERE state <> 'retired'"
HANDLED = "SELECT task_id::text, life, status FROM public.storm_ledger"
PENDING = "SELECT count(*) FROM outbox"


def read_memory(database_url: str) -> MemoryRows:
    return asyncio.run(_read(database_url))


async def _read(database_url: str) -> MemoryRows:
    connection = await asyncpg.connect(database_url, timeout=30)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            return MemoryRows(
                frozenset(row[0] for row in await connection.fetch(CONCERNED)),
                [AgentEventRow(**dict(row)) for row in await connection.fetch(EVENTS)],
                [HandledRow(**dict(row)) for row in await connection.fetch(HANDLED)],
                await connection.fetchval(MODELS),
                {row["event_id"]: row["job_id"] for row in await connection.fetch(FAILED)},
                await connection.fetchval(PENDING),
            )
    finally:
        await connection.close()

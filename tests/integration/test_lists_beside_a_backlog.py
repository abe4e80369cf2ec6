"""Lists of a provider, an actor or a queue beside a long backlog of others: nothing of it is read, and nothing missed.

Counted are the entries of indexes that a list goes through: many of them stand in one block.
"""

import asyncio
import itertools
import random
from typing import Any
from uuid import UUID

import asyncpg

from tests.conftest import a_database
from tests.integration.test_listing import a_random_history, means, reading
from tests.support.engine.store import Engine, an_engine, on_the_engine
from tests.support.servers.private_servers import Servers
from windlass.shared.filters import Filter
from windlass.shared.states import State
from windlass.shared.store.operating import queues
from windlass.shared.store.reading import listing
from windlass.shared.store.tasks import bulk

EACH = 12_000
"""So many are blocked, and as many wait: their index is larger than what is looked through without asking."""

FEW = 200
"""Entries: a page, and what is found on the way to it."""

BACKLOG = """
INSERT INTO tasks (task_id, actor, provider, status, unmet, payload, timeout_seconds, available_at, user_id)
SELECT ('0189' || lpad(to_hex(n), 8, '0') || '70008000000000000000')::uuid, $2, $2,
       CASE n % 2 WHEN 0 THEN 'blocked' ELSE 'queued' END, 1 - n % 2, '{}', 60, now(), 'user-' || n % 10
FROM generate_series(1, 2 * $1::int) AS n
"""

ENTRIES = """
SELECT sum(pg_stat_get_xact_tuples_returned(indexrelid))::bigint FROM pg_index WHERE indrelid = 'tasks'::regclass
"""

WHOSE: dict[str, dict[str, Any]] = {
    "an idle provider": {"provider": "idle"},
    "an idle actor": {"actor": "rester"},
    "an idle queue": {"provider": "idle", "actor": "rester"},
    "an idle queue of busy ones": {"provider": "busy", "actor": "rester"},
    "an unknown actor": {"actor": "nobody"},
    "a quiet provider": {"provider": "quiet"},
    "a quiet actor": {"actor": "whisperer"},
    "a quiet queue": {"provider": "quiet", "actor": "whisperer"},
    "a busy provider": {"provider": "busy"},
    "a busy actor": {"actor": "busy"},
    "an agent that nobody has called": {"subagent_type": "sleeper"},
}

LISTS = {
    f"{whose}, {status or 'all'}": Filter(**of, status=status and [status])
    for (whose, of), status in itertools.product(WHOSE.items(), (None, *State))
}


async def fill(engine: Engine) -> None:
    """The quiet ones' tasks are older than all others."""
    await engine.provide("busy", limit=None, actors=("busy", "rester"))
    await engine.provide("idle", limit=None, actors=("rester",))
    await engine.provide("quiet", limit=None, actors=("whisperer",))
    await engine.sql(BACKLOG, EACH, "busy")
    await engine.sql(
        """
        INSERT INTO tasks (task_id, actor, provider, status, payload, timeout_seconds, available_at, user_id)
        SELECT ('0100' || lpad(to_hex(n), 8, '0') || '70008000000000000000')::uuid, 'whisperer', 'quiet', 'queued',
               '{}', 60, now(), 'ann' FROM generate_series(1, 7) AS n
        """
    )
    await queues.mend_tallies(engine.pool)
    await queues.fold_tallies(engine.pool)


async def entries_of(lists: asyncpg.pool.PoolConnectionProxy, wanted: Filter) -> int:
    async with lists.transaction():
        before: int = await lists.fetchval(ENTRIES)
        await listing.newest(lists, wanted, limit=51)
        after: int = await lists.fetchval(ENTRIES)
    return after - before


async def entries_of_lists(url: str) -> dict[str, int]:
    async with an_engine(url) as engine:
        await engine.sql("ALTER TABLE tasks SET (autovacuum_enabled = false)")
        await fill(engine)
        await engine.sql("ANALYZE tasks")
        async with reading(engine) as lists, lists.acquire() as connection:
            return {name: await entries_of(connection, wanted) for name, wanted in LISTS.items()}


def test_a_list_does_not_go_through_the_backlog_of_others(servers: Servers, migrated_template: str) -> None:
    """In a database of its own: what other tests have left dead in the indexes is none of the backlog."""
    with a_database(servers, migrated_template) as url:
        asked = asyncio.run(entries_of_lists(url))
    assert not {name: entries for name, entries in asked.items() if entries > FEW}


@on_the_engine
async def test_beside_a_backlog_every_list_finds_what_it_means(engine: Engine) -> None:
    chance = random.Random(16)
    await fill(engine)
    rows = [row for row in await a_random_history(engine, chance, 160) if row["actor"] != "busy"]
    values: dict[str, list[Any]] = {
        "status": [None, *([state] for state in State), ["blocked", "dead"], ["queued", "blocked"]],
        "actor": [None, "probe", "media", "rester", "whisperer", "nobody"],
        "provider": [None, "slow", "odd", "quiet", "idle"],
        "user_id": [None, "ann"],
    }
    found = 0
    async with reading(engine) as lists:
        for some in itertools.product(*values.values()):
            wanted: dict[str, Any] = {
                name: value for name, value in zip(values, some, strict=True) if value is not None
            }
            if not wanted.keys() & {"actor", "provider"}:
                continue
            expected = [row["task_id"] for row in rows if means(row, wanted)]
            page = await listing.newest(lists, Filter(**wanted), limit=500)
            assert [row.task_id for row in page] == expected, wanted
            found += "blocked" in {row.status for row in page}
        assert found > 20, "else the blocked are hardly tried"
        several: list[dict[str, Any]] = [
            {"actor": "probe"},
            {"provider": "odd"},
            {"actor": "media", "provider": "slow"},
        ]
        for wanted in several:
            expected = [row["task_id"] for row in rows if means(row, wanted)]
            assert await page_by_page(lists, Filter(**wanted)) == expected, wanted


async def page_by_page(lists: asyncpg.Pool, wanted: Filter) -> list[UUID]:
    seen: list[UUID] = []
    while page := await listing.newest(lists, wanted, limit=7, before=seen[-1] if seen else None):
        seen += [row.task_id for row in page]
    return seen


@on_the_engine
async def test_a_blocked_task_is_listed_from_its_first_moment(engine: Engine) -> None:
    """Among so many that the tallies are asked, whether they are folded or not."""
    await fill(engine)
    parent = await engine.submit(actor="busy", provider="busy")
    async with reading(engine) as lists:

        async def blocked(**of: str) -> list[UUID]:
            wanted = Filter(status=[State.BLOCKED], actor=of.get("actor"), provider=of.get("provider"))
            return [row.task_id for row in await listing.newest(lists, wanted, limit=9)]

        assert await blocked(actor="rester") == []
        child = await engine.submit(actor="rester", provider="idle", depends_on=[parent])
        assert await blocked(actor="rester") == await blocked(provider="idle") == [child]
        await queues.fold_tallies(engine.pool)
        assert await blocked(actor="rester") == await blocked(provider="idle") == [child]
        assert await blocked(actor="rester", provider="busy") == []
        await engine.cancel(child)
        assert await blocked(actor="rester") == []
        assert await engine.revive(child) == "blocked"
        assert await blocked(actor="rester") == await blocked(provider="idle") == [child]


@on_the_engine
async def test_a_change_to_many_finds_a_blocked_task_that_nobody_has_tallied(engine: Engine) -> None:
    """A list may be without it for an hour; what is to be cancelled is looked for among the rows."""
    await fill(engine)
    await engine.sql(
        """
        INSERT INTO tasks (task_id, actor, provider, status, unmet, payload, timeout_seconds, available_at, user_id)
        VALUES (gen_random_uuid(), 'rester', 'idle', 'blocked', 1, '{}', 60, now(), 'ann')
        """
    )
    async with reading(engine) as lists:
        for wanted in (Filter(provider="idle"), Filter(actor="rester")):
            assert await listing.newest(lists, wanted, limit=9) == []
            assert await bulk.count(engine.pool, "cancel", wanted, owner=None) == 1
        await queues.mend_tallies(engine.pool)
        assert len(await listing.newest(lists, Filter(provider="idle"), limit=9)) == 1

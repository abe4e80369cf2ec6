"""A long backlog is not walked through: what is asked beside the hot path costs about the same however much waits.

Counted are the blocks that each question looks at, by plans that are kept from when there was nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from tests.conftest import a_database
from tests.support.engine.store import RULES, Engine, an_engine, on_the_engine
from tests.support.servers.private_servers import Servers
from windlass.shared.db import Database, open_reading_pool
from windlass.shared.filters import Filter
from windlass.shared.settings import Settings
from windlass.shared.states import Lane, State
from windlass.shared.store import tasks
from windlass.shared.store.flow_control import flow, providers
from windlass.shared.store.operating import cluster_state, queues, reconciliation, workers
from windlass.shared.store.reading import dead_letters, listing, why
from windlass.shared.store.tasks import dependencies
from windlass.shared.toml_tables import LaneSettings

WAITING = 20_000
FEW, VERY_FEW = 3_000, 400
"""Blocks, of what counts a page of tasks and of the rest; to walk through all that waits takes 20,000, or 800 where the
pages are sorted before they are read."""

BACKLOG = """
INSERT INTO tasks (
    task_id, actor, provider, status, unmet, payload, timeout_seconds, available_at, user_id, max_age_seconds,
    expires_at)
SELECT ('0189' || lpad(to_hex(n), 8, '0') || '70008000000000000000')::uuid, 'probe', 'probe',
       CASE WHEN n % 200 = 7 THEN 'blocked' ELSE 'queued' END, (n % 200 = 7)::int, '{}', 60,
       now() - interval '1 h' + CASE WHEN n % 100 = 0 THEN interval '1 day' ELSE n * interval '1 ms' END,
       'user-' || n % 10, 864000, CASE WHEN n % 2 = 0 THEN now() + interval '9 days' END
FROM generate_series(1, $1::int) AS n
"""


def in_the_backlog(number: int) -> UUID:
    return UUID(f"0189{number:08x}70008000000000000000")


EDGES = """
INSERT INTO task_dependencies (parent_id, child_id)
SELECT (SELECT task_id FROM tasks WHERE status = 'queued' LIMIT 1), task_id FROM tasks WHERE status = 'blocked'
"""

BLOCKS = """
SELECT coalesce(sum(pg_stat_get_xact_blocks_fetched(oid)), 0)::bigint FROM pg_class
WHERE oid = 'tasks'::regclass OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = 'tasks'::regclass)
"""

Question = Callable[[Database], Awaitable[Any]]


def a_status(user_id: str | None) -> Question:
    return lambda db: queues.status(db, user_id=user_id, heard_within_seconds=30, looked_at=500)


def a_why(number: int) -> Question:
    async def ask(db: Database) -> Any:
        row = await tasks.get(db, in_the_backlog(number))
        return row and await why.look_at(db, row, [row.queue])

    return ask


QUESTIONS: dict[str, Question] = {
    "the status of the queues": a_status(None),
    "the status of a user's queues": a_status("user-3"),
    "the status of somebody without tasks": a_status("nobody"),
    "why the first waits": a_why(1),
    "why the last waits": a_why(WAITING - 1),
    "what autoscalers read": lambda db: db.fetch("SELECT * FROM scale_demand"),
    "the providers": lambda db: flow.overview(db, RULES, LaneSettings(), heard_within_seconds=30),
    "who holds slots": flow.holders,
    "the workers": workers.newest,
    "the sweep of the expired": tasks.expire,
    "the sweep of the stale": tasks.stall,
    "the re-check of the blocked": dependencies.recheck,
    "the dependents left": dependencies.settle_next,
    "what is unaccounted for": lambda db: reconciliation.count_unaccounted(
        db, after_seconds=60, heard_within_seconds=30
    ),
    "the next look": providers.seconds_to_next_look,
    "the retries that wait": lambda db: providers.waiting_retries(db, LaneSettings(), ["probe.probe"]),
}

COUNTS_SOME = {"the status of the queues", "the status of a user's queues", "why the last waits"} | {
    "the re-check of the blocked", "what is unaccounted for",
}  # fmt: skip

LISTS = {
    "the newest": Filter(),
    "retrying": Filter(status=[State.RETRYING]),
    "of a provider": Filter(provider="probe"),
    "of an idle provider": Filter(provider="idle"),
    "of a user": Filter(user_id="user-3"),
    "of somebody without tasks": Filter(user_id="nobody"),
    "the retry lane": Filter(lane=Lane.RETRY),
    "of an unknown project": Filter(project_id="none"),
    "of an unknown workflow": Filter(workflow_id="none"),
    "of an unknown run": Filter(workflow_run_id="none"),
    "of an unknown interaction": Filter(interaction_id="none"),
    "of an unknown parent": Filter(parent_task_id=UUID(int=7)),
    "of an unknown tag": Filter(tag=["none"]),
    "of an unknown error": Filter(error_type="None"),
    "of an unknown fingerprint": Filter(fingerprint="None"),
}


async def fill(engine: Engine) -> None:
    await engine.provide("probe", limit=3)
    await engine.provide("idle", limit=1)
    await engine.sql(BACKLOG, WAITING)
    await engine.sql(EDGES)
    await queues.mend_tallies(engine.pool)
    for number, task_id in enumerate(await engine.submit_many(4)):
        if number % 2:
            await engine.start(task_id)


async def blocks_of(connection: asyncpg.pool.PoolConnectionProxy, question: Question) -> int:
    async with connection.transaction():
        before: int = await connection.fetchval(BLOCKS)
        await question(connection)
        after: int = await connection.fetchval(BLOCKS)
    return after - before


@pytest.mark.parametrize("analyzed", [False, True])
def test_no_question_walks_through_the_backlog(servers: Servers, migrated_template: str, analyzed: bool) -> None:
    """In a database of its own: what other tests have left dead in the indexes is none of the backlog."""
    with a_database(servers, migrated_template) as url:
        asked = asyncio.run(blocks_of_all(url, analyzed=analyzed))
    assert not {name: blocks for name, blocks in asked.items() if blocks > (FEW if name in COUNTS_SOME else VERY_FEW)}


async def blocks_of_all(url: str, *, analyzed: bool) -> dict[str, int]:
    async with an_engine(url) as engine, engine.pool.acquire() as connection:
        await engine.sql("ALTER TABLE tasks SET (autovacuum_enabled = false)")  # nobody analyses but us
        for question in QUESTIONS.values():
            await question(connection)
        await fill(engine)
        if analyzed:
            await engine.sql("ANALYZE tasks")
        return {name: await blocks_of(connection, question) for name, question in QUESTIONS.items()}


def test_no_list_walks_through_the_backlog(servers: Servers, migrated_template: str) -> None:
    with a_database(servers, migrated_template) as url:
        asked = asyncio.run(blocks_of_lists(url))
    assert not {name: blocks for name, blocks in asked.items() if blocks > FEW}


async def blocks_of_lists(url: str) -> dict[str, int]:
    async with an_engine(url) as engine:
        await engine.sql("ALTER TABLE tasks SET (autovacuum_enabled = false)")
        await fill(engine)
        await engine.sql("ANALYZE tasks")
    lists = await open_reading_pool(Settings(database_url=url), "test", most=1)
    try:
        async with lists.acquire() as connection:
            asked = {
                name: await blocks_of(connection, partial(listing.newest, wanted=wanted, limit=51))
                for name, wanted in LISTS.items()
            }
            groups = partial(dead_letters.group_by_error, wanted=Filter(), limit=50)
            return {**asked, "the dead by their errors": await blocks_of(connection, groups)}
    finally:
        await lists.close()


@on_the_engine
async def test_the_figures_are_exact_however_few_are_looked_at(engine: Engine) -> None:
    await fill(engine)
    for user_id in (None, "user-0", "user-7", "ann", "nobody"):
        whole = await queues.status(engine.pool, user_id=user_id, heard_within_seconds=30, looked_at=10 * WAITING)
        brief = await queues.status(engine.pool, user_id=user_id, heard_within_seconds=30, looked_at=50)
        assert [{**row, "oldest_age_seconds": None} for row in whole[0]] == [
            {**row, "oldest_age_seconds": None} for row in brief[0]
        ]
        assert whole[1] == brief[1]
    read = await cluster_state.read(engine.pool, workers_within_seconds=30, janitors_within_seconds=30)
    (probe,) = (row for row in read.queues if row["provider"] == "probe")
    assert (probe["queued"], probe["blocked"], probe["running"]) == (WAITING - 100 + 2, 100, 2)
    assert (probe["fresh"], probe["scheduled"]) == (WAITING - 300 + 2, 200)

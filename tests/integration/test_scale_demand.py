"""How many pods a queue wants: what runs, and what is due and may start; nothing else."""

import asyncio
import json
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID, uuid4

import asyncpg
import pytest

from tests.support.engine.dispatching import would_start
from tests.support.engine.flow import (
    be_told_429,
    change,
    let_the_time_pass,
    open_the_breaker,
    pause,
    serve,
)
from tests.support.engine.rated import let_the_window_pass, set_rate
from tests.support.engine.store import Engine, on_the_engine
from tests.support.servers.databases import execute


async def wanted(engine: Engine, queue: str = "probe.probe") -> int:
    number: int = await engine.pool.fetchval("SELECT wanted FROM scale_demand WHERE queue = $1", queue)
    return number


async def hold_a_job_open(engine: Engine, *task_ids: UUID) -> None:
    await engine.sql("UPDATE tasks SET job_open = true WHERE task_id = ANY ($1)", list(task_ids))


@on_the_engine
async def test_a_quiet_queue_wants_nobody(engine: Engine) -> None:
    await engine.completed()
    await engine.dead()
    assert await wanted(engine) == 0


@on_the_engine
async def test_all_that_is_due_is_wanted_however_few_workers_there_are(engine: Engine) -> None:
    await serve(engine, capacity=1)
    await engine.submit_many(100)
    assert await wanted(engine) == 100


@on_the_engine
async def test_a_limit_wants_no_more_than_it_lets_start(engine: Engine) -> None:
    await engine.provide("probe", limit=3)
    task_ids = await engine.submit_many(100)
    assert await wanted(engine) == 3
    for task_id in task_ids[:2]:
        await engine.start(task_id)
    assert await wanted(engine) == 3, "two run, and one more may"


@on_the_engine
async def test_what_waits_for_its_rate_wants_nobody(engine: Engine) -> None:
    await set_rate(engine, 3)
    task_ids = await engine.submit_many(100)
    assert await wanted(engine) == 3
    for task_id in task_ids[:3]:
        await engine.start(task_id)
    assert await wanted(engine) == 3, "those that run"
    await let_the_window_pass(engine)
    assert await wanted(engine) == 6
    await set_rate(engine, None)
    assert await wanted(engine) == 100


@on_the_engine
async def test_an_operator_s_limit_is_the_one_that_counts(engine: Engine) -> None:
    await engine.provide("probe", limit=3)
    await engine.submit_many(10)
    await change(engine, limit=5)
    assert await wanted(engine) == 5
    await change(engine, limit=0)
    assert await wanted(engine) == 0


@on_the_engine
async def test_work_that_runs_for_hours_keeps_its_one_place(engine: Engine) -> None:
    await engine.provide("probe", limit=1)
    attempt = await engine.running()
    await engine.sql("UPDATE tasks SET started_at = clock_timestamp() - interval '1 hour'")
    assert await wanted(engine) == 1
    await engine.finish(attempt)
    assert await wanted(engine) == 0


@on_the_engine
async def test_what_runs_above_a_lowered_limit_is_not_sent_away(engine: Engine) -> None:
    for _ in range(4):
        await engine.running()
    await engine.submit_many(10)
    await change(engine, limit=2)
    assert await wanted(engine) == 4


@on_the_engine
async def test_what_is_scheduled_for_later_is_not_wanted_yet(engine: Engine) -> None:
    (later,) = await engine.submit_many(1, delay_seconds=3600.0)
    await engine.submit_many(2)
    assert await wanted(engine) == 2
    await engine.become_due(later)
    assert await wanted(engine) == 3


@on_the_engine
async def test_a_retry_is_wanted_when_its_time_has_come(engine: Engine) -> None:
    attempt = await engine.running()
    await engine.finish(attempt, "retry", delay_seconds=3600.0)
    assert await wanted(engine) == 0
    await engine.become_due(attempt.task_id)
    assert await wanted(engine) == 1


@on_the_engine
async def test_what_is_too_old_to_start_wants_nobody(engine: Engine) -> None:
    await engine.outlive(*await engine.submit_many(3))
    assert await wanted(engine) == 0


@on_the_engine
async def test_a_pause_wants_only_what_runs(engine: Engine) -> None:
    await engine.submit_many(10)
    await engine.running()
    await change(engine, paused=True)
    assert await wanted(engine) == 1
    await change(engine, paused=False)
    assert await wanted(engine) == 11


@on_the_engine
async def test_an_open_breaker_wants_nobody_and_then_one(engine: Engine) -> None:
    await open_the_breaker(engine)
    await engine.submit_many(10)
    assert await wanted(engine) == 0
    await let_the_time_pass(engine)
    assert await wanted(engine) == 1, "the one that goes first"


@on_the_engine
async def test_a_breaker_that_an_operator_opened_wants_nobody(engine: Engine) -> None:
    await engine.submit_many(10)
    await change(engine, breaker="open")
    await let_the_time_pass(engine)
    assert await wanted(engine) == 0


@on_the_engine
async def test_after_a_429_nobody_and_then_one_is_wanted(engine: Engine) -> None:
    await pause(engine)
    await engine.submit_many(10)
    assert await wanted(engine) == 0
    await let_the_time_pass(engine)
    assert await wanted(engine) == 1
    trial = await engine.running()
    assert await wanted(engine) == 1, "the one that went first runs, and the others wait for it"
    await be_told_429(engine, trial)
    assert await wanted(engine) == 0


@on_the_engine
async def test_a_task_with_an_open_job_needs_no_free_slot(engine: Engine) -> None:
    await engine.provide("probe", limit=2)
    task_ids = await engine.submit_many(6)
    await hold_a_job_open(engine, *task_ids[:2])
    assert await wanted(engine) == 2, "they hold both slots"
    await hold_a_job_open(engine, task_ids[2])
    assert await wanted(engine) == 3


@on_the_engine
async def test_each_queue_has_a_row_of_its_own(engine: Engine) -> None:
    await engine.provide("other", limit=None)
    await engine.submit_many(2)
    await engine.submit_many(3, provider="other")
    rows = await engine.pool.fetch("SELECT queue, wanted FROM scale_demand ORDER BY queue")
    assert [tuple(row) for row in rows] == [("probe.other", 3), ("probe.probe", 2)]


CONDITIONS = {
    "clear": "breaker_state = 'closed'",
    "paused": "paused = true",
    "told 429": "paused_until = now() + interval '1 minute'",
    "after a 429": "paused_until = now() - interval '1 minute'",
    "breaker open": "breaker_state = 'open', breaker_until = now() + interval '1 minute'",
    "breaker half-open": "breaker_state = 'half-open', breaker_until = now() - interval '1 minute'",
}


@on_the_engine
async def test_it_says_what_a_claim_would_start_under_any_conditions(engine: Engine) -> None:
    waiting = 8
    task_ids = await engine.submit_many(waiting)
    await engine.running()
    for number_of_jobs in (0, 1, 2):
        await hold_a_job_open(engine, *task_ids[:number_of_jobs])
        for condition, setting in CONDITIONS.items():
            for limit in (None, 0, 1, 2, 4, 2 * waiting):
                await engine.sql(
                    "UPDATE providers SET paused = false, paused_until = NULL, breaker_until = NULL, "
                    "breaker_state = 'closed', configured_limit = $1",
                    limit,
                )
                await engine.sql(f"UPDATE providers SET {setting}")
                expected = 1 + len(await would_start(engine))
                assert await wanted(engine) == expected, (condition, limit, number_of_jobs)


def test_a_role_without_any_right_may_read_the_demand_and_nothing_else(database_url: str) -> None:
    role = f"scaler_{uuid4().hex}"
    execute(database_url, f"CREATE ROLE {role} LOGIN PASSWORD 'scaler'")
    parts = urlsplit(database_url)
    url = urlunsplit(parts._replace(netloc=f"{role}:scaler@{parts.hostname}:{parts.port}"))

    async def read() -> None:
        connection = await asyncpg.connect(url)
        try:
            assert await connection.fetchval("SELECT coalesce(sum(wanted), 0)::bigint FROM scale_demand") == 0
            for table in ("tasks", "providers", "api_keys"):
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    await connection.fetch(f"SELECT * FROM {table}")
            with pytest.raises(asyncpg.PostgresError):
                await connection.execute("UPDATE scale_demand SET wanted = 1")
        finally:
            await connection.close()

    try:
        asyncio.run(read())
    finally:
        execute(database_url, f"DROP ROLE {role}")


@on_the_engine
async def test_asking_costs_the_same_however_many_tasks_are_scheduled_for_later(engine: Engine) -> None:
    await engine.submit_many(1000, delay_seconds=3600.0)
    await engine.sql("VACUUM ANALYZE tasks")  # what the tests before have left is no part of it
    query = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT wanted FROM scale_demand WHERE queue = 'probe.probe'"
    async with engine.pool.acquire() as connection:
        # Who makes the plan reads the catalogue for it, also when the autovacuum has just analyzed the table once more.
        plans = [json.loads(await connection.fetchval(query)) for _ in range(5)]
    pages = min(plan[0]["Plan"]["Shared Hit Blocks"] for plan in plans)
    assert pages < 300, "some probes of an index, and no walk over what waits for another day"

"""Plans are kept per connection: one made while there was little to read must not read everything later."""

from typing import Any

import asyncpg

from tests.support.engine.store import Engine, on_the_engine
from windlass.shared.db import as_json
from windlass.shared.settings import Settings
from windlass.shared.store.flow_control.flow import Rules
from windlass.shared.store.functions import named
from windlass.shared.store.tasks import Ending, Report

OURS = 40
OTHERS = 3000
MOST_READS_EACH = 10
"""Each is locked, looked at and written; a walk over all that run reads many times as much."""

RENEW = f"SELECT * FROM {named('renew_leases')}('worker-1', $1, $2, 60)"
REPORT = f"SELECT * FROM {named('report_tasks')}($1::text::jsonb, skip_locked => true)"
END = f"SELECT * FROM {named('end_tasks')}($1::text::jsonb, $2::text::jsonb)"
ROWS_READ = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'tasks'"
RUN_THEM = """
    UPDATE tasks SET status = 'running', attempt = 1, claim_token = gen_random_uuid(), worker_id = 'another',
        started_at = clock_timestamp(), lease_expires_at = clock_timestamp() + interval '1 hour'
    WHERE status = 'queued'
"""


@on_the_engine
async def test_a_renewal_reads_its_own_tasks_however_many_run(engine: Engine) -> None:
    attempts = [await engine.start(each) for each in await engine.submit_many(OURS)]
    ids, tokens = [each.task_id for each in attempts], [each.claim_token for each in attempts]
    async with engine.pool.acquire() as connection:
        for _ in range(2):  # the plan is made now, while next to nothing is there
            await connection.fetch(RENEW, ids[:1], tokens[:1])
        await run_many_others(engine)
        read = await rows_read(connection, RENEW, ids, tokens)
    assert read <= OURS * MOST_READS_EACH


@on_the_engine
async def test_a_report_reads_its_own_tasks_however_many_run(engine: Engine) -> None:
    attempts = [await engine.start(each) for each in await engine.submit_many(OURS)]

    def reports(number: int, *, of: int) -> str:
        event = {"type": "progress", "data": {"status": "running"}}
        return as_json(
            [Report(each.task_id, each.attempt, each.claim_token, number, {}, None, [event]) for each in attempts[:of]]
        )

    async with engine.pool.acquire() as connection:
        for number in (1, 2):
            await connection.fetch(REPORT, reports(number, of=1))
        await run_many_others(engine)
        read = await rows_read(connection, REPORT, reports(3, of=OURS))
    assert read <= OURS * MOST_READS_EACH


@on_the_engine
async def test_ends_read_their_own_tasks_however_many_run(engine: Engine) -> None:
    attempts = [await engine.start(each) for each in await engine.submit_many(OURS + 2)]
    rules = as_json(Rules.of(Settings()))
    endings = [Ending(each.task_id, each.attempt, each.claim_token, "complete", result={}) for each in attempts]
    async with engine.pool.acquire() as connection:
        for each in endings[:2]:
            await connection.fetch(END, as_json([each]), rules)
        await run_many_others(engine)
        read = await rows_read(connection, END, as_json(endings[2:]), rules)
    assert read <= OURS * MOST_READS_EACH


async def run_many_others(engine: Engine) -> None:
    await engine.submit_many(OTHERS)
    await engine.sql(RUN_THEM)


async def rows_read(connection: asyncpg.pool.PoolConnectionProxy, statement: str, *arguments: Any) -> int:
    """Of tasks, by one more call, which answers for all of ours. What the connection read within the last second may
    not have been handed on yet, and is in the count, too: so it is taken before and after."""
    async with connection.transaction():
        before: int = await connection.fetchval(ROWS_READ)
        assert len(await connection.fetch(statement, *arguments)) == OURS
        after: int = await connection.fetchval(ROWS_READ)
    return after - before

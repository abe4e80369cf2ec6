"""What a dispatcher sees, how much it rings for, and when it looks again."""

import asyncio

import pytest

from tests.support.engine.dispatching import HEARD_WITHIN, MANY, ask_next, look, seconds_to_next_look
from tests.support.engine.store import Engine, an_engine, on_the_engine
from windlass.services.dispatcher.backlog import RetryBacklog
from windlass.shared.settings import Settings
from windlass.shared.store.flow_control import providers
from windlass.shared.store.operating import workers
from windlass.shared.toml_tables import LaneSettings


@on_the_engine
async def test_a_look_counts_what_runs_what_is_due_and_who_could_take_it(engine: Engine) -> None:
    await engine.provide("probe", limit=7)
    for worker, queues in (
        ("one", ["probe.probe"]),
        ("two", ["probe.probe", "probe.other"]),
        ("else", ["probe.other"]),
    ):
        await workers.register(engine.pool, worker, hostname="h", pid=1, queues=queues, capacity=4)
    await workers.register(engine.pool, "silent", hostname="h", pid=1, queues=["probe.probe"], capacity=4)
    await engine.sql("UPDATE workers SET heartbeat_at = now() - interval '1 h' WHERE worker_id = 'silent'")
    await workers.register(engine.pool, "leaving", hostname="h", pid=1, queues=["probe.probe"], capacity=4)
    await workers.leave(engine.pool, "leaving", state="stopping", reason="told to stop")
    for _ in range(4):
        await engine.running(worker="one")
    await engine.submit_many(5)
    view = await look(engine)
    assert (view.limit, view.held, view.capacity, view.fresh_due, view.idle_places) == (7, 4, 8, 5, 4)
    assert (view.queues, view.due_by_queue, view.resumes_by_queue) == (["probe.probe"], [5], [0])
    assert view.idle_workers == [1], "the first of them is full"


@on_the_engine
async def test_a_look_counts_as_much_as_all_places_could_take_twice(engine: Engine) -> None:
    await engine.submit_many(700)
    assert (await look(engine)).fresh_due == providers.DUE_COUNTED
    await workers.register(engine.pool, "large", hostname="h", pid=1, queues=["probe.probe"], capacity=400)
    assert (await look(engine)).fresh_due == 700


@on_the_engine
async def test_configuring_again_changes_nothing_and_keeps_what_an_operator_has_set(engine: Engine) -> None:
    await engine.sql("UPDATE providers SET limit_override = 9")
    await engine.submit()
    before = await look(engine)
    await providers.configure(engine.pool, Settings())
    assert await look(engine) == before
    assert before.limit == 9


@on_the_engine
async def test_the_next_look_is_when_the_next_task_becomes_due(engine: Engine) -> None:
    assert await seconds_to_next_look(engine) is None
    await engine.submit(delay_seconds=5000)
    await engine.submit(delay_seconds=1000, priority=7)
    await engine.submit()
    seconds = await seconds_to_next_look(engine)
    assert seconds is not None
    assert 900 < seconds <= 1000


@pytest.mark.parametrize("question", ["look", "claim", "next look"])
def test_tasks_scheduled_for_later_are_not_walked_over(database_url: str, question: str) -> None:
    """Rows read are counted by Postgres itself: a backlog of delayed tasks must not be read to find one that is due."""

    async def ask() -> None:
        async with an_engine(database_url) as engine:
            await have_a_backlog_of_delayed_tasks(engine)
            due = await engine.submit()
            before = await rows_read(engine)
            if question == "look":
                await look(engine)
            if question == "claim":
                assert [each.task_id for each in (await ask_next(engine)).claimed] == [due]
            if question == "next look":
                assert await seconds_to_next_look(engine) is not None
            assert await rows_read(engine) - before < 100

    asyncio.run(ask())


async def have_a_backlog_of_delayed_tasks(engine: Engine) -> None:
    await engine.sql(
        """
        INSERT INTO tasks (task_id, actor, provider, status, timeout_seconds, user_id, available_at)
        SELECT gen_random_uuid(), 'probe', 'probe', 'queued', 1, 'ann', now() + make_interval(secs => 60 + n)
        FROM generate_series(1, $1) AS n
        """,
        MANY,
    )
    await engine.sql("ANALYZE tasks")


async def rows_read(engine: Engine) -> int:
    """How many rows of `tasks` all connections have read so far."""
    async with engine.pool.acquire() as connection:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        number: int = await connection.fetchval(
            """
            SELECT pg_stat_get_tuples_returned('tasks'::regclass) + pg_stat_get_tuples_fetched('tasks'::regclass)
                   + (SELECT sum(pg_stat_get_tuples_returned(indexrelid)) FROM pg_index
                      WHERE indrelid = 'tasks'::regclass)
            """
        )
    return int(number)


@on_the_engine
async def test_a_long_backlog_of_retries_is_counted_now_and_then_and_its_share_written(engine: Engine) -> None:
    ids = await engine.submit_many(1001)
    await engine.sql("UPDATE tasks SET lane = 'retry' WHERE task_id = ANY ($1)", ids)
    backlog = RetryBacklog(LaneSettings(), believed_seconds=600)

    async def share() -> int:
        await backlog.share(engine.pool, await providers.look(engine.pool, heard_within_seconds=HEARD_WITHIN))
        written: int = await engine.pool.fetchval("SELECT retry_share FROM providers WHERE name = 'probe'")
        return written

    assert await share() == 20
    await engine.submit_many(4100)
    await engine.sql("UPDATE tasks SET lane = 'retry'")
    assert await share() == 20, "the last figure is believed"
    await RetryBacklog(LaneSettings()).share(engine.pool, [await look(engine)])
    assert await engine.pool.fetchval("SELECT retry_share FROM providers WHERE name = 'probe'") == 10

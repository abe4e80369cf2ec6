"""Doorbells that were not rung or not answered, and when the dispatcher looks again."""

import asyncio
from uuid import uuid4

import pytest

from tests.support.engine.dispatching import MANY, check_doorbells, have_rung, look, reserve, seconds_to_next_look
from tests.support.engine.store import Engine, an_engine, on_the_engine
from windlass.services.dispatcher.backlog import RetryBacklog
from windlass.shared.store.flow_control import providers
from windlass.shared.toml_tables import LaneSettings


@on_the_engine
async def test_doorbells_that_could_not_be_rung_are_given_back_by_their_token(engine: Engine) -> None:
    await engine.submit_many(3)
    token = uuid4()
    first, second, _ = await reserve(engine, await look(engine), fresh=3, token=token)
    await providers.give_back(engine.pool, uuid4(), [first])
    assert (await engine.row(first))["doorbell_token"] == token, "another's token gives nothing back"
    await engine.start(second)
    await providers.give_back(engine.pool, token, [first, second])
    assert (await engine.row(first))["doorbell_token"] is None
    assert await engine.status(second) == "running"
    assert await reserve(engine, await look(engine), fresh=3) == [first]


@on_the_engine
async def test_a_doorbell_that_nobody_answers_is_checked_after_2_4_8_and_then_every_15_seconds(engine: Engine) -> None:
    task_id = await engine.submit()
    await reserve(engine, await look(engine), fresh=1)
    assert await check_doorbells(engine) == []
    for wait in (2, 4, 8, 15, 15):
        await have_rung(engine, task_id, seconds_ago=wait - 0.5)
        assert await check_doorbells(engine) == []
        seconds = await seconds_to_next_look(engine)
        assert seconds is not None
        assert 0 < seconds <= 0.5
        await have_rung(engine, task_id, seconds_ago=wait + 0.1)
        assert await check_doorbells(engine) == [task_id]
        assert await check_doorbells(engine) == [], "the check itself starts the time anew"


@on_the_engine
async def test_a_doorbell_that_was_answered_is_not_checked(engine: Engine) -> None:
    task_id = await engine.submit()
    await reserve(engine, await look(engine), fresh=1)
    await have_rung(engine, task_id, seconds_ago=60)
    await engine.start(task_id)
    assert await check_doorbells(engine) == []


@on_the_engine
async def test_two_dispatchers_check_each_doorbell_once(engine: Engine) -> None:
    await engine.submit_many(40)
    await engine.sql(
        "UPDATE tasks SET doorbell_token = $1, doorbell_count = 1, doorbell_at = now() - interval '1 min'", uuid4()
    )
    checked = await asyncio.gather(*(check_doorbells(engine) for _ in range(3)))
    assert len([task_id for each in checked for task_id in each]) == 40


@on_the_engine
async def test_the_next_look_is_when_the_next_task_becomes_due(engine: Engine) -> None:
    assert await seconds_to_next_look(engine) is None
    await engine.submit(delay_seconds=500)
    await engine.submit(delay_seconds=100, priority=7)
    await engine.submit()
    seconds = await seconds_to_next_look(engine)
    assert seconds is not None
    assert 90 < seconds <= 100


@pytest.mark.parametrize("question", ["look", "reserve", "next look"])
def test_tasks_scheduled_for_later_are_not_walked_over(database_url: str, question: str) -> None:
    """Rows read are counted by Postgres itself: a backlog of delayed tasks must not be read to find one that is due."""

    async def ask() -> None:
        async with an_engine(database_url) as engine:
            await have_a_backlog_of_delayed_tasks(engine)
            due = await engine.submit()
            before = await rows_read(engine)
            view = await look(engine)
            if question == "reserve":
                assert await reserve(engine, view, fresh=10, retry=10) == [due]
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
async def test_a_long_backlog_of_retries_is_counted_once_a_second_and_not_at_every_look(engine: Engine) -> None:
    ids = await engine.submit_many(1001)
    await engine.sql("UPDATE tasks SET lane = 'retry' WHERE task_id = ANY ($1)", ids)
    backlog = RetryBacklog(LaneSettings())

    async def waiting() -> int | None:
        (view,) = await backlog.fill_in(engine.pool, await providers.look(engine.pool, heard_within_seconds=30))
        assert view.retry_due == providers.DUE_COUNTED
        return view.waiting_retries

    assert await waiting() == 1001
    await engine.submit_many(5)
    await engine.sql("UPDATE tasks SET lane = 'retry'")
    assert await waiting() == 1001, "the last second's figure is believed"
    assert await providers.waiting_retries(engine.pool, LaneSettings(), ["probe.probe"]) == {"probe": 1006}

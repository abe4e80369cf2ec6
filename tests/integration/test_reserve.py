"""Reservations: in the right order, never early, never too many, and looked after until somebody claims."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.support.engine.dispatching import HEARD_WITHIN, MANY, dispatch, look, reserve
from tests.support.engine.store import Engine, on_the_engine
from windlass.shared.admission import Admission, admit
from windlass.shared.settings import Settings
from windlass.shared.store.flow_control import providers
from windlass.shared.store.operating import workers


@on_the_engine
async def test_a_look_reads_little_however_many_wait_and_whatever_the_planner_believed(engine: Engine) -> None:
    """Its plan is made once per connection: here while the statistics say that there are no tasks at all."""
    await engine.sql("VACUUM ANALYZE tasks")
    async with engine.pool.acquire() as acquired:
        connection: Any = acquired
        await providers.look(connection, heard_within_seconds=HEARD_WITHIN)
        await engine.submit_many(MANY)
        async with connection.transaction():
            await providers.look(connection, heard_within_seconds=HEARD_WITHIN)
            rows_read = await connection.fetchval(
                "SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = 'tasks'"
            )
    assert rows_read <= 2 * providers.DUE_COUNTED


@on_the_engine
async def test_priority_comes_first_then_age(engine: Engine) -> None:
    low = await engine.submit_many(2, priority=3)
    medium = await engine.submit_many(2, priority=2)
    critical = await engine.submit_many(2, priority=0)
    expected = [*critical, *medium, *low]
    assert await reserve(engine, await look(engine), fresh=4) == expected[:4]
    assert await reserve(engine, await look(engine), fresh=4) == expected[4:]


@on_the_engine
async def test_what_became_due_first_is_the_oldest(engine: Engine) -> None:
    patient, hasty = await engine.submit_many(2)
    await engine.become_due(patient)
    assert await reserve(engine, await look(engine), fresh=2) == [hasty, patient]


@on_the_engine
async def test_a_reserved_row_says_where_it_is_rung_for_and_remembers_it(engine: Engine) -> None:
    task_id = await engine.submit()
    token = uuid4()
    (row,) = await providers.reserve(engine.pool, await look(engine), Admission(1, 0, credit=40), token)
    assert (row["task_id"], row["queue"], row["actor"]) == (task_id, "probe.probe", "probe")
    task = await engine.row(task_id)
    assert (task["doorbell_token"], task["doorbell_count"], task["status"]) == (token, 1, "queued")
    event = (await engine.history(task_id))[-1]
    assert (event["type"], event["data"]) == ("dispatch", {"status": "queued", "queue": "probe.probe"})
    await engine.submit()
    assert (await look(engine)).lane_credit == 40, "the lanes' credit is kept with it"


@on_the_engine
async def test_each_lane_gets_what_was_decided(engine: Engine) -> None:
    fresh = await engine.submit_many(3)
    failed = await engine.submit_many(3)
    for task_id in failed:
        await engine.finish(await engine.start(task_id), "retry", delay_seconds=0)
    view = await look(engine)
    assert (view.fresh_due, view.retry_due) == (3, 3)
    reserved = await reserve(engine, view, fresh=1, retry=2)
    assert len(reserved) == 3
    assert len(set(reserved) & set(fresh)) == 1
    assert len(set(reserved) & set(failed)) == 2


@pytest.mark.parametrize(("waiting_retries", "fresh", "retry"), [(500, 70, 30), (1200, 80, 20), (5200, 90, 10)])
@on_the_engine
async def test_over_a_hundred_single_picks_the_lanes_get_exactly_their_shares(
    engine: Engine, waiting_retries: int, fresh: int, retry: int
) -> None:
    """One place at a time: only the credit that is kept with the provider can know whose turn it is."""
    await engine.provide("probe", limit=1)
    for lane, number in (("fresh", 110), ("retry", waiting_retries)):
        await engine.sql(
            """
            INSERT INTO tasks (task_id, actor, provider, status, lane, timeout_seconds, user_id, available_at)
            SELECT gen_random_uuid(), 'probe', 'probe', 'queued', $1, 1, 'ann', now() FROM generate_series(1, $2)
            """,
            lane,
            number,
        )
    picked = {"fresh": 0, "retry": 0}
    for _ in range(100):
        (task_id,) = await dispatch(engine)
        attempt = await engine.start(task_id)
        picked[(await engine.row(task_id))["lane"]] += 1
        await engine.finish(attempt)
    assert picked == {"fresh": fresh, "retry": retry}


@on_the_engine
async def test_a_delayed_task_is_not_started_early(engine: Engine) -> None:
    await engine.submit(delay_seconds=3600)
    await engine.submit(run_at="2999-01-01T00:00:00Z")
    failed = await engine.running()
    await engine.finish(failed, "retry", delay_seconds=60)
    assert await providers.look(engine.pool, heard_within_seconds=HEARD_WITHIN) == []
    due = await engine.submit()
    view = await look(engine)
    assert (view.fresh_due, view.retry_due) == (1, 0)
    assert await reserve(engine, view, fresh=10, retry=10) == [due]


@on_the_engine
async def test_a_task_of_another_time_zone_is_due_when_it_says(engine: Engine) -> None:
    await engine.submit(run_at="2020-01-01T00:00:00+14:00")
    assert (await look(engine)).fresh_due == 1


@on_the_engine
async def test_a_task_that_has_grown_too_old_is_not_rung_for(engine: Engine) -> None:
    old, young = await engine.submit_many(2, max_age_seconds=60)
    await engine.outlive(old)
    assert (await look(engine)).fresh_due == 1
    assert await reserve(engine, await look(engine), fresh=5) == [young]


@on_the_engine
async def test_a_task_that_was_rung_for_is_not_rung_for_again_by_the_next_round(engine: Engine) -> None:
    await engine.submit_many(3)
    first = await reserve(engine, await look(engine), fresh=2)
    second = await reserve(engine, await look(engine), fresh=2)
    assert len(first) == 2
    assert len(second) == 1
    assert not set(first) & set(second)


@on_the_engine
async def test_a_look_counts_what_runs_what_was_rung_for_and_who_could_take_it(engine: Engine) -> None:
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
    await engine.running()
    await engine.submit_many(5)
    await reserve(engine, await look(engine), fresh=2)
    view = await look(engine)
    assert (view.limit, view.held, view.rung, view.capacity, view.fresh_due) == (7, 1, 2, 8, 3)


@on_the_engine
async def test_two_dispatchers_that_saw_the_same_reserve_disjoint_rows_and_no_more_than_the_limit(
    engine: Engine,
) -> None:
    await engine.provide("probe", limit=4)
    await engine.submit_many(20)
    view = await look(engine)
    admission = admit(view)
    assert admission.fresh == 4
    one, two, three = await asyncio.gather(*(reserve(engine, view, fresh=admission.fresh) for _ in range(3)))
    assert sorted(map(len, (one, two, three))) == [0, 0, 4], "who was late has to look again"
    assert await engine.count("doorbell_token IS NOT NULL") == 4
    assert admit(await look(engine)).fresh == 0


@on_the_engine
async def test_dispatchers_side_by_side_never_ring_for_more_than_the_limit(engine: Engine) -> None:
    await engine.provide("probe", limit=5)
    await engine.submit_many(30)
    await engine.running()

    async def several_rounds() -> list[UUID]:
        return [task_id for _ in range(6) for task_id in await dispatch(engine)]

    rounds = await asyncio.gather(*(several_rounds() for _ in range(3)))
    reserved = [task_id for each in rounds for task_id in each]
    assert len(reserved) == len(set(reserved)) == 4
    assert await engine.count("status = 'running' OR doorbell_token IS NOT NULL") == 5


@on_the_engine
async def test_a_limit_that_was_changed_since_the_look_stops_the_reservation(engine: Engine) -> None:
    await engine.submit_many(10)
    view = await look(engine)
    settings = Settings(providers={"probe": {"limit": 1}})
    await providers.configure(engine.pool, settings)
    assert await reserve(engine, view, fresh=10) == []
    assert admit(await look(engine)).fresh == 1


@on_the_engine
async def test_configuring_again_changes_nothing_and_keeps_what_an_operator_has_set(engine: Engine) -> None:
    await engine.sql("UPDATE providers SET limit_override = 9")
    await engine.submit()
    before = await look(engine)
    await providers.configure(engine.pool, Settings())
    assert await look(engine) == before
    assert before.limit == 9

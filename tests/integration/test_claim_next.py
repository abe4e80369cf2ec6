"""Who is next: in the right order, never early, never too many, and each of them once."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.support.engine.dispatching import MANY, ask_next, look, start_next, would_start
from tests.support.engine.flow import serve
from tests.support.engine.store import RULES, Engine, an_ending, on_the_engine
from windlass.services.dispatcher.backlog import RetryBacklog
from windlass.shared.holds import Hold
from windlass.shared.store import tasks
from windlass.shared.store.flow_control import providers
from windlass.shared.store.operating import workers
from windlass.shared.store.tasks import Ask, Claimed
from windlass.shared.toml_tables import LaneSettings


def ids(attempts: list[Claimed]) -> list[UUID]:
    return [each.task_id for each in attempts]


@on_the_engine
async def test_priority_comes_first_then_age(engine: Engine) -> None:
    low = await engine.submit_many(2, priority=3)
    medium = await engine.submit_many(2, priority=2)
    critical = await engine.submit_many(2, priority=0)
    expected = [*critical, *medium, *low]
    assert ids(await start_next(engine, 4)) == expected[:4]
    assert ids(await start_next(engine, 4)) == expected[4:]


@on_the_engine
async def test_what_became_due_first_is_the_oldest(engine: Engine) -> None:
    patient, hasty = await engine.submit_many(2)
    await engine.become_due(patient)
    assert ids(await start_next(engine)) == [hasty, patient]


@on_the_engine
async def test_what_is_granted_runs_under_the_tokens_that_the_worker_chose(engine: Engine) -> None:
    task_id = await engine.submit(payload={"say": "hello"})
    tokens = [uuid4(), uuid4()]
    (attempt,) = (await tasks.claim_next(engine.pool, "worker-1", Ask({"probe.probe": 2}, tokens), 30)).claimed
    assert (attempt.task_id, attempt.attempt, attempt.payload) == (task_id, 1, {"say": "hello"})
    assert attempt.claim_token == tokens[0]
    row = await engine.row(task_id)
    assert (row.status, row.worker_id, row.claim_token) == ("running", "worker-1", tokens[0])
    assert await engine.story(task_id) == ["submit", "claim"]


@on_the_engine
async def test_no_more_than_there_are_tokens_and_none_of_another_queue(engine: Engine) -> None:
    await engine.provide("other", limit=None)
    await engine.submit_many(5)
    await engine.submit(provider="other")
    assert len(await start_next(engine, 3)) == 3
    ask = Ask({"probe.other": 5, "probe.probe": 5}, [uuid4() for _ in range(2)])
    assert len((await tasks.claim_next(engine.pool, "worker-1", ask, 30)).claimed) == 2


@on_the_engine
async def test_it_says_where_more_is_due(engine: Engine) -> None:
    await engine.submit_many(3)
    assert (await ask_next(engine, 2)).more == {"probe.probe"}
    assert (await ask_next(engine, 2)).more == set()
    await engine.provide("probe", limit=2)
    await engine.submit()
    full = await ask_next(engine, 2)
    assert (full.claimed, full.more) == ([], {"probe.probe"}), "it is due, though nothing may start"


@on_the_engine
async def test_a_delayed_an_expired_and_a_held_task_are_not_started(engine: Engine) -> None:
    await engine.submit(delay_seconds=3600)
    await engine.submit(run_at="2999-01-01T00:00:00Z")
    await engine.outlive(await engine.submit(max_age_seconds=60))
    held = await engine.submit()
    await tasks.hold(engine.pool, [held], Hold.WORKFLOW)
    await engine.finish(await engine.running(), "retry", delay_seconds=60)
    assert await start_next(engine) == []
    due = await engine.submit(run_at="2020-01-01T00:00:00+14:00")
    assert ids(await start_next(engine)) == [due]


@on_the_engine
async def test_the_limit_holds_however_many_ask_at_once(engine: Engine) -> None:
    await engine.provide("probe", limit=5)
    await engine.submit_many(30)
    answers = await asyncio.gather(*(start_next(engine, 4, worker=f"worker-{number}") for number in range(8)))
    assert sum(map(len, answers)) == 5
    assert await engine.count("status = 'running'") == 5


@on_the_engine
async def test_many_who_ask_at_once_get_each_task_once_and_all_of_them(engine: Engine) -> None:
    """Nothing guards the provider, and nobody waits for another: who finds a task locked takes the next."""
    await engine.submit_many(60)
    given: list[Claimed] = []
    while answers := await asyncio.gather(*(start_next(engine, 7, worker=f"worker-{each}") for each in range(6))):
        found = [attempt for each in answers for attempt in each]
        if not found:
            break
        given += found
    assert len({each.task_id for each in given}) == len(given) == 60


@pytest.mark.parametrize(("waiting_retries", "fresh", "retry"), [(500, 70, 30), (1200, 80, 20), (5200, 90, 10)])
@on_the_engine
async def test_over_a_hundred_single_starts_the_lanes_get_exactly_their_shares(
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
    await RetryBacklog(LaneSettings()).share(engine.pool, [await look(engine)])
    picked = {"fresh": 0, "retry": 0}
    (attempt,) = await start_next(engine, 1)
    for _ in range(100):
        picked[(await engine.row(attempt.task_id)).lane] += 1
        ask = Ask({"probe.probe": 1}, [uuid4()])
        endings = [an_ending(attempt, "complete")]
        _, answer = await tasks.end_and_next(engine.pool, endings, RULES, "worker-1", ask, 30)
        (attempt,) = answer.claimed
    assert picked == {"fresh": fresh, "retry": retry}


@on_the_engine
async def test_where_nothing_guards_the_lanes_get_about_their_shares(engine: Engine) -> None:
    await engine.submit_many(400)
    await engine.sql(
        "UPDATE tasks SET lane = 'retry' WHERE task_id IN (SELECT task_id FROM tasks ORDER BY task_id LIMIT 200)"
    )
    attempts = [attempt for _ in range(100) for attempt in await start_next(engine, 2)]
    retries = await engine.pool.fetchval(
        "SELECT count(*) FROM tasks WHERE lane = 'retry' AND task_id = ANY ($1)", ids(attempts)
    )
    assert 35 <= retries <= 85, "of 200, where 60 are expected"


@on_the_engine
async def test_a_lane_that_has_nothing_gives_its_share_away(engine: Engine) -> None:
    await engine.provide("probe", limit=10)
    await engine.submit_many(3)
    assert len(await start_next(engine)) == 3
    assert await engine.pool.fetchval("SELECT lane_credit FROM providers WHERE name = 'probe'") == 0


@on_the_engine
async def test_a_look_and_a_claim_read_little_however_many_wait_and_whatever_the_planner_believed(
    engine: Engine,
) -> None:
    """Plans are made once per connection: here while the statistics say that there are no tasks at all, in a table that
    an open snapshot keeps from shrinking."""
    await engine.sql("ALTER TABLE tasks SET (autovacuum_enabled = false)")  # it would plan anew in the middle
    await engine.submit_many(1000)
    async with engine.pool.acquire() as elder, elder.transaction(isolation="repeatable_read"):
        await elder.fetchval("SELECT count(*) FROM tasks")
        await engine.sql("DELETE FROM tasks")
        await engine.sql("VACUUM ANALYZE tasks")
    async with engine.pool.acquire() as acquired:
        connection: Any = acquired
        await connection.execute("SET plan_cache_mode = force_generic_plan")  # or some would be made again later
        for _ in range(6):
            await providers.look(connection, heard_within_seconds=30)
            await ask_next(engine, 10, connection=connection)
        await engine.submit_many(MANY)
        for question, most in (
            (lambda: providers.look(connection, heard_within_seconds=30), 2 * providers.DUE_COUNTED),
            (lambda: ask_next(engine, 10, connection=connection), 200),
        ):
            read = "SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = 'tasks'"
            async with connection.transaction():
                before = await connection.fetchval(read)
                await question()
                assert await connection.fetchval(read) - before <= most


@pytest.mark.parametrize("lost", ["the answer", "the call", "neither, yet"])
@on_the_engine
async def test_what_was_asked_for_and_not_answered_is_recalled(engine: Engine, lost: str) -> None:
    await workers.register(engine.pool, "worker-1", hostname="h", pid=1, queues=["probe.probe"], capacity=8)
    await engine.submit_many(5)
    ask = Ask({"probe.probe": 2}, [uuid4(), uuid4()])
    if lost == "the answer":
        await tasks.claim_next(engine.pool, "worker-1", ask, 30)
    recalled = await tasks.recall(engine.pool, "worker-1", ask.tokens, 30, epoch=1)
    assert {each.claim_token for each in recalled.claimed} == (set(ask.tokens) if lost == "the answer" else set())
    if lost == "neither, yet":
        late = await tasks.claim_next(engine.pool, "worker-1", ask, 30, epoch=0)
        assert late.claimed == [], "the call that was recalled comes after all, and is void"
        assert await engine.count("status = 'running'") == 0
    again = await tasks.claim_next(engine.pool, "worker-1", Ask({"probe.probe": 1}, [uuid4()]), 30, epoch=1)
    assert len(again.claimed) == 1


@on_the_engine
async def test_a_recall_waits_for_the_call_that_it_recalls(engine: Engine) -> None:
    await workers.register(engine.pool, "worker-1", hostname="h", pid=1, queues=["probe.probe"], capacity=8)
    await engine.provide("probe", limit=1)
    await engine.submit()
    ask = Ask({"probe.probe": 1}, [uuid4()])
    await engine.be_connected(3)
    async with engine.holding("SELECT * FROM providers WHERE name = 'probe' FOR UPDATE"):
        claiming = asyncio.create_task(tasks.claim_next(engine.pool, "worker-1", ask, 30))
        await engine.until_waiting(1)
        recalling = asyncio.create_task(tasks.recall(engine.pool, "worker-1", ask.tokens, 30, epoch=1))
        await engine.until_waiting(2)
    assert ids((await recalling).claimed) == ids((await claiming).claimed) != []


@on_the_engine
async def test_what_somebody_has_locked_is_passed_over(engine: Engine) -> None:
    first, second = await engine.submit_many(2)
    async with engine.holding("SELECT 1 FROM tasks WHERE task_id = $1 FOR NO KEY UPDATE", first):
        assert ids(await start_next(engine)) == [second]
    assert ids(await start_next(engine)) == [first]


@on_the_engine
async def test_who_must_run_alone_is_not_given_to_who_asks_for_the_next_and_is_told_of(engine: Engine) -> None:
    suspect, other = await engine.submit_many(2)
    await engine.sql("UPDATE tasks SET suspicion = 2 WHERE task_id = $1", suspect)
    answer = await ask_next(engine)
    assert (ids(answer.claimed), answer.suspects) == ([other], {"probe.probe"})


@on_the_engine
async def test_a_slot_is_left_to_who_must_run_alone_for_a_while_and_then_not(engine: Engine) -> None:
    await engine.provide("probe", limit=1)
    suspect, other = await engine.submit_many(2)
    await engine.sql("UPDATE tasks SET suspicion = 2 WHERE task_id = $1", suspect)
    assert await start_next(engine) == [], "its turn has come, and a process of its own is started for it"
    for minutes, started in ((0.5, True), (5, False)):
        await engine.sql("UPDATE tasks SET turn_at = now() - make_interval(secs => $1)", 60 * minutes + 1)
        assert bool(await would_start(engine)) is started
    await engine.sql("UPDATE tasks SET turn_at = NULL")
    assert await start_next(engine) == []
    await engine.start(suspect, alone=True)
    assert await start_next(engine) == []
    await engine.sql("UPDATE tasks SET priority = 0 WHERE task_id = $1", other)


@on_the_engine
async def test_who_must_run_alone_keeps_no_slot_before_its_turn(engine: Engine) -> None:
    await engine.provide("probe", limit=1)
    other, suspect = await engine.submit_many(2)
    await engine.sql("UPDATE tasks SET suspicion = 2 WHERE task_id = $1", suspect)
    assert ids(await start_next(engine)) == [other]


@on_the_engine
async def test_an_end_and_the_next_are_one_call(engine: Engine) -> None:
    await engine.provide("probe", limit=1)
    first, second = await engine.submit_many(2)
    (attempt,) = await start_next(engine)
    ask = Ask({"probe.probe": 1}, [uuid4()])
    async with engine.listening("windlass_dispatch") as heard:
        statuses, answer = await tasks.end_and_next(
            engine.pool, [an_ending(attempt, "complete")], RULES, "worker-1", ask, 30
        )
    assert (statuses, ids(answer.claimed)) == (["completed"], [second])
    assert await engine.status(first) == "completed"
    assert heard == [], "nothing is left that the dispatcher could ring for"


@on_the_engine
async def test_a_429_of_the_same_call_starts_nothing(engine: Engine) -> None:
    await engine.submit_many(5)
    (attempt,) = await start_next(engine, 1)
    ending = an_ending(attempt, "retry", rate_limited=True, delay_seconds=60)
    ask = Ask({"probe.probe": 3}, [uuid4() for _ in range(3)])
    async with engine.listening("windlass_dispatch") as heard:
        statuses, answer = await tasks.end_and_next(engine.pool, [ending], RULES, "worker-1", ask, 30)
    assert (statuses, answer.claimed) == (["retrying"], [])
    assert heard == ["probe"], "who rings has to know until when it is paused"


@on_the_engine
async def test_a_repeated_end_answers_as_the_first_time_and_asks_all_the_same(engine: Engine) -> None:
    await engine.submit_many(2)
    (attempt,) = await start_next(engine, 1)
    await engine.finish(attempt)
    ask = Ask({"probe.probe": 1}, [uuid4()])
    ending = an_ending(attempt, "complete")
    statuses, answer = await tasks.end_and_next(engine.pool, [ending], RULES, "worker-1", ask, 30)
    assert statuses == ["completed"]
    assert len(answer.claimed) == 1
    assert await engine.story(attempt.task_id) == ["submit", "claim", "complete"]


@on_the_engine
async def test_a_slot_whose_turn_is_another_queue_s_is_left_to_it(engine: Engine) -> None:
    """Else it would pass from task to task inside one queue, however long the other's have waited."""
    await engine.provide("probe", limit=1, actors=("probe", "summarize"))
    await serve(engine, queue="probe.probe")
    await workers.register(engine.pool, "worker-2", hostname="h", pid=1, queues=["summarize.probe"], capacity=8)
    (attempt,) = [await engine.running()]
    other = await engine.submit(actor="summarize")
    await engine.submit_many(5)
    ask = Ask({"probe.probe": 1}, [uuid4()])
    async with engine.listening("windlass_dispatch") as heard:
        ending = an_ending(attempt, "complete")
        _, answer = await tasks.end_and_next(engine.pool, [ending], RULES, "worker-1", ask, 30)
    assert answer.claimed == []
    assert heard == ["probe"], "somebody has to ring for the other one"
    assert ids(await start_next(engine, queues=["summarize.probe"], worker="worker-2")) == [other]


@on_the_engine
async def test_a_slot_is_not_left_to_a_queue_whose_workers_have_no_place(engine: Engine) -> None:
    await engine.provide("probe", limit=2, actors=("probe", "summarize"))
    await serve(engine, queue="probe.probe")
    await workers.register(engine.pool, "worker-2", hostname="h", pid=1, queues=["summarize.probe"], capacity=1)
    await engine.running(actor="summarize", worker="worker-2")
    await engine.submit(actor="summarize")
    task_id = await engine.submit()
    assert ids(await start_next(engine)) == [task_id]

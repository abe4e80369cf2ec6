"""A provider that serves several actors: one limit, one order, one pause over all of its queues."""

import random
from typing import Any
from uuid import UUID

import pytest

from tests.support.engine.dispatching import shared_between_lanes, start_next, would_start
from tests.support.engine.flow import (
    be_told_429,
    change,
    let_the_time_pass,
    look,
    open_the_breaker,
    provider_story,
)
from tests.support.engine.store import Engine, on_the_engine
from windlass.services.api.access.auth import Caller
from windlass.services.api.tasks.why import explanation_of
from windlass.shared.reasons import Reason
from windlass.shared.settings import Settings
from windlass.shared.store.flow_control import providers
from windlass.shared.store.operating import queues, reconciliation, workers
from windlass.shared.store.tasks import Refused

BOTH = ("probe", "summarize")
SUMMARY: dict[str, Any] = {"actor": "summarize"}
ADMIN = Caller("key", "admin", "root")


async def share(engine: Engine, *, limit: int | None = 1) -> None:
    await engine.provide("probe", limit=limit, actors=BOTH)


async def serve(engine: Engine, *queue_names: str, capacity: int = 8) -> None:
    """A worker of just these queues is alive."""
    worker_id = f"worker-of-{'-'.join(queue_names)}"
    await workers.register(engine.pool, worker_id, hostname="h", pid=1, queues=queue_names, capacity=capacity)


async def fall_silent(engine: Engine, queue: str) -> None:
    await engine.sql("UPDATE workers SET heartbeat_at = now() - interval '1 h' WHERE $1 = ANY (queues)", queue)


async def demand(engine: Engine) -> dict[str, int]:
    rows = await engine.pool.fetch("SELECT queue, wanted FROM scale_demand")
    return {row["queue"]: row["wanted"] for row in rows}


async def why(engine: Engine, task_id: UUID) -> Reason:
    said = await explanation_of(engine.pool, await engine.row(task_id), ADMIN, Settings())
    return Reason(said["reason"])


@on_the_engine
async def test_the_limit_is_over_all_of_its_queues(engine: Engine) -> None:
    await share(engine, limit=1)
    await serve(engine, "probe.probe", "summarize.probe")
    first, second = await engine.submit(), await engine.submit(**SUMMARY)
    assert await would_start(engine) == [first], "the other queue's waits for the same slot"
    attempt = await engine.start(first)
    assert isinstance(await engine.claim(second), Refused)
    await engine.finish(attempt)
    assert await would_start(engine) == [second]
    assert (await engine.start(second)).actor == "summarize"


@on_the_engine
async def test_priority_and_age_count_across_the_queues(engine: Engine) -> None:
    await share(engine, limit=None)
    wanted = [
        (2, await engine.submit(priority=2)),
        (1, await engine.submit(priority=1, **SUMMARY)),
        (2, await engine.submit(priority=2, **SUMMARY)),
        (1, await engine.submit(priority=1)),
        (0, await engine.submit(priority=0, **SUMMARY)),
    ]
    expected = [task_id for _, task_id in sorted(wanted, key=lambda each: each[0])]
    queues = ["probe.probe", "summarize.probe"]
    given = await start_next(engine, 3, queues=queues)
    assert {each.task_id for each in given} == set(expected[:3])
    assert sorted(each.actor for each in given) == ["probe", "summarize", "summarize"]
    assert set(await would_start(engine)) == set(expected[3:])


@pytest.mark.parametrize("seed", range(3))
@on_the_engine
async def test_what_is_given_is_what_a_plain_sort_would_choose(engine: Engine, seed: int) -> None:
    chance = random.Random(seed)
    await share(engine, limit=100)
    for _ in range(60):
        task_id = await engine.submit(actor=chance.choice(BOTH), priority=chance.randrange(10))
        await engine.sql(
            "UPDATE tasks SET lane = $2, available_at = now() - make_interval(secs => $3) WHERE task_id = $1",
            task_id,
            chance.choice(["fresh", "retry"]),
            chance.choice([-3600, 5, 5, 10, 20]),
        )
    while (view := await look(engine)).fresh_due + view.retry_due:
        rows = await engine.pool.fetch(
            """
            SELECT task_id, lane, priority, available_at FROM tasks
            WHERE status IN ('queued', 'retrying') AND available_at <= now()
            """
        )
        number = chance.randrange(1, 9)
        credit = await engine.pool.fetchval("SELECT lane_credit FROM providers WHERE name = 'probe'")
        wanted = await shared_between_lanes(
            engine, number, view.fresh_due, view.retry_due, view.retry_share, credit=credit
        )
        in_order = sorted(rows, key=lambda row: (row["priority"], row["available_at"], row["task_id"]))
        expected = {
            row["task_id"]
            for lane, places in (("fresh", wanted.fresh), ("retry", wanted.retry))
            for row in [row for row in in_order if row["lane"] == lane][:places]
        }
        given = await start_next(engine, number, queues=["probe.probe", "summarize.probe"])
        assert {each.task_id for each in given} == expected


@on_the_engine
async def test_a_queue_without_a_worker_takes_no_place_from_one_that_has_one(engine: Engine) -> None:
    await share(engine, limit=1)
    await serve(engine, "probe.probe")
    backlog = [await engine.submit(priority=0, **SUMMARY) for _ in range(20)]
    task_id = await engine.submit(priority=5)
    assert await why(engine, backlog[0]) is Reason.NO_WORKER
    assert await why(engine, task_id) is Reason.ABOUT_TO_START
    assert await would_start(engine) == [task_id]
    attempt = await engine.start(task_id)
    assert await why(engine, backlog[0]) is Reason.NO_WORKER, "and not the limit: the slot would not be its own"
    await engine.finish(attempt)
    assert (await look(engine)).queues == ["probe.probe"]
    async with engine.listening("windlass_dispatch") as heard:
        await serve(engine, "summarize.probe")
    assert heard == [""], "who comes is told of: to everybody whom it may serve"
    assert await would_start(engine) == backlog[:1]


@on_the_engine
async def test_a_queue_whose_workers_have_gone_keeps_no_slot(engine: Engine) -> None:
    await share(engine, limit=1)
    await serve(engine, "summarize.probe")
    await engine.submit(**SUMMARY)
    await serve(engine, "probe.probe")
    task_id = await engine.submit()
    assert await would_start(engine, queues=["probe.probe"]) == [], "it is the other's turn"
    await fall_silent(engine, "summarize.probe")
    assert await would_start(engine, queues=["probe.probe"]) == [task_id]


@on_the_engine
async def test_while_nobody_serves_any_all_of_them_are_rung_for(engine: Engine) -> None:
    await share(engine, limit=None)
    task_ids = [await engine.submit(), await engine.submit(**SUMMARY)]
    assert set(await would_start(engine)) == set(task_ids)


@on_the_engine
async def test_a_worker_of_both_queues_counts_once(engine: Engine) -> None:
    await share(engine, limit=None)
    await serve(engine, "probe.probe", "summarize.probe", capacity=20)
    await serve(engine, "summarize.probe", capacity=5)
    await engine.submit()
    assert (await look(engine)).capacity == 25


@on_the_engine
async def test_an_open_job_in_an_unserved_queue_is_no_trial_for_the_others(engine: Engine) -> None:
    await share(engine, limit=3)
    attempt = await engine.running(**SUMMARY)
    await be_told_429(engine, attempt)
    await engine.sql("UPDATE tasks SET job_open = true WHERE task_id = $1", attempt.task_id)
    await let_the_time_pass(engine)
    await serve(engine, "probe.probe")
    task_id = await engine.submit()
    assert await would_start(engine) == [task_id], "the trial is one's that somebody can run"


@on_the_engine
async def test_a_429_and_a_pause_hold_both_queues_back(engine: Engine) -> None:
    await share(engine, limit=None)
    await be_told_429(engine, await engine.running(**SUMMARY))
    await engine.submit()
    assert await would_start(engine) == []
    assert isinstance(await engine.claim(await engine.submit(**SUMMARY)), Refused)
    await change(engine, paused=True)
    await let_the_time_pass(engine)
    assert await would_start(engine) == []


@on_the_engine
async def test_the_breaker_opens_for_both_queues(engine: Engine) -> None:
    await share(engine, limit=None)
    await open_the_breaker(engine)
    refused = await engine.claim(await engine.submit(**SUMMARY))
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.BREAKER_OPEN
    await let_the_time_pass(engine)
    tried = await engine.submit(**SUMMARY)
    assert len(await would_start(engine)) == 1, "one of both goes first"
    await engine.start(tried)
    assert "half-open" in await provider_story(engine)


@on_the_engine
async def test_each_queue_wants_what_it_could_start(engine: Engine) -> None:
    await share(engine, limit=3)
    assert await demand(engine) == {"probe.probe": 0, "summarize.probe": 0}
    await engine.submit_many(5)
    await engine.submit(**SUMMARY)
    assert await demand(engine) == {"probe.probe": 3, "summarize.probe": 1}
    attempt = await engine.running(**SUMMARY)
    assert await demand(engine) == {"probe.probe": 2, "summarize.probe": 2}, "one runs, and two places are left"
    await engine.finish(attempt)
    await change(engine, paused=True)
    assert await demand(engine) == {"probe.probe": 0, "summarize.probe": 0}


@on_the_engine
async def test_each_queue_has_figures_of_its_own(engine: Engine) -> None:
    await share(engine, limit=None)
    await serve(engine, "summarize.probe", capacity=4)
    parent = await engine.submit()
    await engine.submit(depends_on=[parent], **SUMMARY)
    await engine.submit_many(2, **SUMMARY)
    await engine.submit(delay_seconds=3600, **SUMMARY)
    await engine.running(**SUMMARY)
    await engine.dead()
    await engine.completed(**SUMMARY)
    revived = await engine.dead(**SUMMARY)
    await queues.fold_tallies(engine.pool)
    await engine.revive(revived)
    for user_id, looked_at in ((None, 5000), (None, 1), ("ann", 5000), ("ann", 1)):
        rows, _ = await queues.status(engine.pool, user_id=user_id, heard_within_seconds=30, looked_at=looked_at)
        names = ("fresh", "retry", "scheduled", "blocked", "running", "completed", "dead", "workers", "capacity")
        assert {row.queue: tuple(row[name] for name in names) for row in rows} == {
            "probe.probe": (1, 0, 0, 0, 0, 0, 1, 0, 0),
            "summarize.probe": (2, 1, 1, 1, 1, 1, 0, 1, 4),
        }
    assert await queues.mend_tallies(engine.pool) == 0


@on_the_engine
async def test_a_tally_without_an_actor_is_the_first_one_s(engine: Engine) -> None:
    """As the functions of the version before write them, which may still run."""
    await share(engine, limit=None)
    await engine.submit(**SUMMARY)
    await engine.dead()
    await engine.sql("UPDATE task_tallies SET actor = '' WHERE actor = 'probe'")

    async def figures() -> dict[str | None, tuple[int, int]]:
        rows, _ = await queues.status(engine.pool, user_id=None, heard_within_seconds=30)
        return {row.queue: (row.fresh, row.dead) for row in rows}

    expected = {"probe.probe": (0, 1), "summarize.probe": (1, 0)}
    assert await figures() == expected
    assert await queues.mend_tallies(engine.pool) == 0
    await queues.fold_tallies(engine.pool)
    assert await figures() == expected


@on_the_engine
async def test_what_waits_in_an_unserved_queue_is_told_of_by_health_and_not_as_unaccounted_for(engine: Engine) -> None:
    await share(engine, limit=None)
    await serve(engine, "probe.probe")
    await engine.submit(**SUMMARY)
    await engine.sql("UPDATE tasks SET available_at = available_at - interval '10 min'")

    async def unaccounted() -> int:
        found = await reconciliation.count_unaccounted(engine.pool, after_seconds=60, heard_within_seconds=30)
        return found["dispatcher"]

    assert await workers.unserved_queues(engine.pool, for_seconds=60) == ["summarize.probe"]
    assert await unaccounted() == 0
    await serve(engine, "summarize.probe")
    await engine.sql("UPDATE workers SET started_at = started_at - interval '1 h'")
    assert await unaccounted() == 1, "now the dispatcher should have rung"


@on_the_engine
async def test_configuring_writes_every_pair_and_takes_none_away(engine: Engine) -> None:
    async def known() -> set[str]:
        rows = await engine.pool.fetch("SELECT queue FROM queues WHERE provider = 'ours'")
        return {row["queue"] for row in rows}

    both = Settings(providers={"ours": {"actors": ["summarize", "probe"]}})
    await providers.configure(engine.pool, both)
    assert await known() == {"summarize.ours", "probe.ours"}
    assert await engine.pool.fetchval("SELECT actor FROM providers WHERE name = 'ours'") == "summarize"
    await providers.configure(engine.pool, Settings(providers={"ours": {"actor": "probe"}}))
    assert await known() == {"summarize.ours", "probe.ours"}, "tasks may still wait there"

"""What schedules tell: their failures to endpoints, their starts to the counters, and how they are to a gauge."""

from datetime import timedelta

import pytest
from prometheus_client import Counter

from tests.support.engine.schedules import HOUR, NOON, Schedule, a_task
from tests.support.engine.store import A_FAILURE, Engine, on_the_engine
from tests.support.engine.webhooks import Endpoint, ready
from windlass.services.api.operators.cluster import ClusterMetrics
from windlass.shared.features.schedules import changing, firing
from windlass.shared.metrics.schedules import RUNS
from windlass.shared.metrics.tasks import SUBMITTED
from windlass.shared.schedules.words import Cause
from windlass.shared.store.operating import cluster_state
from windlass.shared.store.schedules import reading


@on_the_engine
async def test_a_failure_is_told_to_who_subscribed_and_the_last_one_says_that_it_stands_still(engine: Engine) -> None:
    await ready(engine)
    hers = await Endpoint.made(engine, "schedule.failed")
    others = await Endpoint.made(engine, "schedule.*", user_id="bob")
    elsewhere = await Endpoint.made(engine, "schedule.failed", filter={"actor": "summarize"})
    schedule = await Schedule.made(engine, pause_after_failures=2)
    for transition in ("complete", "bury", "bury"):
        await schedule.after(HOUR)
        await schedule.finish(transition, **({"error": A_FAILURE} if transition == "bury" else {}))
        await schedule.settle()
        await schedule.settle()
    told = [(kind, data["name"], data["failures"], data["ended_as"], data["state"]) for kind, data in await hers.told()]
    assert told == [
        ("schedule.failed", "nightly", 1, "dead", "active"),
        ("schedule.failed", "nightly", 2, "dead", "paused"),
    ]
    _, last = (await hers.told())[-1]
    assert (last["schedule_id"], last["task_id"]) == (str(schedule.schedule_id), str(await schedule.task()))
    assert last["pause_reason"] == "failures"
    assert await others.told() == []
    assert await elsewhere.told() == [], "its tasks are another actor's"


@on_the_engine
async def test_a_start_that_is_refused_is_a_failure_that_is_told(engine: Engine) -> None:
    await ready(engine)
    endpoint = await Endpoint.made(engine, "schedule.failed")
    schedule = await Schedule.made(engine, prepared=a_task(timeout_seconds="soon"))
    await schedule.after(HOUR)
    ((_, data),) = await endpoint.told()
    assert (data["outcome"], data["task_id"], data["seq"]) == ("refused", None, 2)
    assert data["due_at"] == "2026-06-01T13:00:00.000000Z"


@on_the_engine
async def test_what_has_waited_asks_for_its_owners_key_and_is_counted_when_it_starts(engine: Engine) -> None:
    submitted = SUBMITTED.labels("probe", "wide")
    schedule = await Schedule.made(engine, overlap="queue-one", prepared=a_task(provider="wide"))
    for _ in range(2):
        await schedule.after(HOUR)
    before = value_of(submitted)
    await schedule.finish()
    await schedule.settle()
    assert value_of(submitted) == before + 1
    await schedule.after(HOUR)
    await engine.sql("UPDATE api_keys SET expires_at = now() - interval '1 s'")
    await schedule.finish()
    (decided,) = await schedule.settle()
    assert (decided.outcome, decided.reason) == ("refused", "owner-has-no-key")
    assert (await schedule.row()).pause_reason == "owner-has-no-key"
    assert (await schedule.row()).failures == 1


@on_the_engine
async def test_what_is_backfilled_twice_is_counted_once(engine: Engine) -> None:
    submitted, begun = SUBMITTED.labels("probe", "wide"), RUNS.labels("task", "started")
    schedule = await Schedule.made(engine, prepared=a_task(provider="wide"))
    before = (value_of(submitted), value_of(begun))
    for _ in range(2):
        await firing.fire_one(engine.pool, await schedule.row(), [NOON - HOUR, NOON - 2 * HOUR], Cause.BACKFILL)
    assert (value_of(submitted), value_of(begun)) == (before[0] + 2, before[1] + 2)


def value_of(counter: Counter) -> float:
    (sample, *_) = next(iter(counter.collect())).samples
    return sample.value


@on_the_engine
async def test_how_many_there_are_in_each_state_and_how_late_the_latest_is(engine: Engine) -> None:
    now = await reading.now(engine.pool)
    late = await Schedule.made(engine, "late", now=now - 2 * HOUR, every=3600)
    for name in ("one", "two"):
        await Schedule.made(engine, name, now=now)
    paused = await Schedule.made(engine, "paused", now=now)
    await paused.pause()
    await changing.delete(engine.pool, (await Schedule.made(engine, "deleted", now=now)).schedule_id)
    read = await cluster_state.read(engine.pool, workers_within_seconds=30, janitors_within_seconds=30)
    said = {
        (sample.name, *sample.labels.values()): sample.value
        for family in ClusterMetrics(read).collect()
        for sample in family.samples
    }
    assert said["windlass_schedules", "active", ""] == 3
    assert said["windlass_schedules", "paused", "asked-for"] == 1
    assert said["windlass_schedules", "paused", "failures"] == 0
    overdue = timedelta(seconds=said["windlass_schedule_overdue_seconds",])
    assert overdue == pytest.approx(HOUR, abs=timedelta(minutes=5))
    assert (await late.row()).state == "active"

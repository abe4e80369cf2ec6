"""Why a task is not running: every reason, in the situation that it is for."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from tests.support.engine.dispatching import would_start
from tests.support.engine.flow import (
    be_told_429,
    change,
    let_the_time_pass,
    open_the_breaker,
    pause,
    provider,
    refusal,
    serve,
)
from tests.support.engine.rated import set_rate
from tests.support.engine.store import Engine, on_the_engine
from windlass.services.api.access.auth import Caller
from windlass.services.api.tasks.why import explanation_of
from windlass.shared.settings import Settings
from windlass.shared.store.operating import reports

ADMIN = Caller("key", "admin", "root")
USER = Caller("key", "user", "ann")


async def why(engine: Engine, task_id: UUID, caller: Caller = ADMIN) -> dict[str, Any]:
    return await explanation_of(engine.pool, await engine.row(task_id), caller, Settings())


async def reason(engine: Engine, task_id: UUID) -> str:
    return str((await why(engine, task_id))["reason"])


@on_the_engine
async def test_running(engine: Engine) -> None:
    attempt = await engine.running(worker="worker-7")
    answer = await why(engine, attempt.task_id)
    assert (answer["reason"], answer["details"]["worker_id"]) == ("running", "worker-7")
    assert answer["message"] == "worker worker-7 is working on it"


@on_the_engine
async def test_finished(engine: Engine) -> None:
    cancelled = await engine.submit()
    await engine.cancel(cancelled)
    for task_id, status in (
        (await engine.completed(), "completed"),
        (await engine.dead(), "dead"),
        (cancelled, "cancelled"),
    ):
        answer = await why(engine, task_id)
        assert (answer["reason"], answer["details"]["status"]) == ("finished", status)


@on_the_engine
async def test_too_old_to_start(engine: Engine) -> None:
    task_id = await engine.submit(max_age_seconds=60)
    await engine.outlive(task_id)
    assert await reason(engine, task_id) == "finished"


@on_the_engine
async def test_waiting_for_time(engine: Engine) -> None:
    scheduled = await engine.submit(delay_seconds=3600)
    answer = await why(engine, scheduled)
    assert answer["reason"] == "waiting-for-time"
    assert answer["details"] == {"until": (await engine.row(scheduled))["available_at"]}
    attempt = await engine.running()
    await engine.finish(attempt, "retry", delay_seconds=60)
    answer = await why(engine, attempt.task_id)
    assert answer["reason"] == "waiting-for-time"
    assert answer["details"]["retry_at"] == (await engine.row(attempt.task_id))["available_at"]


@on_the_engine
async def test_waiting_for_dependencies(engine: Engine) -> None:
    done, running, waiting = await engine.completed(), (await engine.running()).task_id, await engine.submit()
    child = await engine.submit(depends_on=[done, running, waiting])
    answer = await why(engine, child)
    assert answer["reason"] == "waiting-for-dependencies"
    assert answer["message"] == "it waits for 2 other tasks to complete"
    assert answer["details"]["unmet"] == [
        {"task_id": running, "status": "running"},
        {"task_id": waiting, "status": "queued"},
    ]


@on_the_engine
async def test_provider_limit_names_who_holds_the_slots_to_those_who_may_know(engine: Engine) -> None:
    await serve(engine)
    await engine.provide("probe", limit=1)
    holder = await engine.running(worker="worker-7")
    task_id = await engine.submit()
    answer = await why(engine, task_id)
    assert (answer["reason"], answer["message"]) == ("provider-limit", "all slots of probe are taken (1 of 1)")
    since = (await engine.row(holder.task_id))["started_at"]
    assert answer["details"] == {
        "limit": 1,
        "held": 1,
        "holders": [{"task_id": holder.task_id, "worker_id": "worker-7", "since": since}],
    }
    assert (await why(engine, task_id, USER))["details"] == {"limit": 1, "held": 1, "holders": None}


@on_the_engine
async def test_a_limit_of_zero(engine: Engine) -> None:
    await change(engine, limit=0)
    assert await reason(engine, await engine.submit()) == "provider-limit"


@on_the_engine
async def test_provider_paused(engine: Engine) -> None:
    await serve(engine)
    await change(engine, paused=True)
    assert await reason(engine, await engine.submit()) == "provider-paused"


@on_the_engine
async def test_rate_limited_until(engine: Engine) -> None:
    await serve(engine)
    told, waiting = await pause(engine), await engine.submit()
    until = (await provider(engine))["paused_until"]
    for task_id in (told, waiting):
        answer = await why(engine, task_id)
        assert (answer["reason"], answer["details"]) == ("rate-limited-until", {"until": until})


@on_the_engine
async def test_a_rate_that_is_used_up_names_the_time_of_the_next_place(engine: Engine) -> None:
    await serve(engine)
    await set_rate(engine, 2)
    first, second, waiting = await engine.submit_many(3)
    assert [await reason(engine, each) for each in (first, waiting)] == ["about-to-start", "behind-others"]
    await engine.start(first)
    taken_at = (await engine.row(first))["started_at"]
    await engine.start(second)
    answer = await why(engine, waiting)
    assert (answer["reason"], await refusal(engine)) == ("rate-limited-until", "rate-limited-until")
    assert answer["message"].startswith("the rate of probe is used up (2 in 60 s)")
    until = answer["details"].pop("until")
    assert timedelta(seconds=63) <= until - taken_at <= timedelta(seconds=66)
    assert answer["details"] == {"limit": 2, "per_seconds": 60}
    await engine.sql("UPDATE tasks SET job_open = true WHERE task_id = $1", waiting)
    assert await reason(engine, waiting) == "about-to-start", "who has an open job needs no place"
    await set_rate(engine, 0)
    answer = await why(engine, await engine.submit())
    assert answer["message"] == "probe has a rate of 0: nothing is started"
    assert answer["details"]["until"] is None


@on_the_engine
async def test_after_the_pause_the_one_that_goes_first_is_about_to_start_and_the_others_wait_for_it(
    engine: Engine,
) -> None:
    await serve(engine)
    await pause(engine)
    await let_the_time_pass(engine)
    first, second = await engine.submit_many(2)
    assert [await reason(engine, first), await reason(engine, second)] == ["about-to-start", "rate-limited-until"]
    assert await would_start(engine) == [first]
    assert [await reason(engine, first), await reason(engine, second)] == ["about-to-start", "rate-limited-until"]
    await engine.start(first)
    assert (await why(engine, second))["details"]["trial_running"]


@on_the_engine
async def test_breaker_open(engine: Engine) -> None:
    await serve(engine)
    await open_the_breaker(engine)
    answer = await why(engine, task_id := await engine.submit())
    assert answer["reason"] == "breaker-open"
    assert answer["details"]["until"] == (await provider(engine))["breaker_until"]
    await let_the_time_pass(engine)
    await engine.running()
    answer = await why(engine, task_id)
    assert (answer["reason"], answer["details"]["trial_running"]) == ("breaker-open", True)
    await change(engine, breaker="open")
    answer = await why(engine, task_id)
    assert answer["message"] == "an operator has opened the breaker of probe"
    assert answer["details"] == {"until": None}


@on_the_engine
async def test_no_worker(engine: Engine) -> None:
    task_id = await engine.submit()
    assert await reason(engine, task_id) == "no-worker"
    await serve(engine, queue="probe.other")
    assert await reason(engine, task_id) == "no-worker"


@on_the_engine
async def test_behind_others(engine: Engine) -> None:
    await serve(engine)
    await engine.provide("probe", limit=1)
    low = await engine.submit(priority=5)
    await engine.submit_many(2)
    last = await engine.submit()
    critical = await engine.submit(priority=0)
    assert await reason(engine, critical) == "about-to-start"
    for caller in (ADMIN, USER):
        answer = await why(engine, last, caller)
        assert answer["reason"] == "behind-others"
        assert answer["message"] == "3 tasks of probe go before it"
        assert answer["details"] == {"position": 4, "exact": True}
    assert (await why(engine, low))["details"]["position"] == 5
    assert await would_start(engine) == [critical]


@on_the_engine
async def test_behind_others_in_the_queue_of_busy_workers(engine: Engine) -> None:
    await serve(engine, capacity=1)
    await engine.running()
    first, second = await engine.submit_many(2)
    assert await would_start(engine) == [first, second]
    assert (await why(engine, first))["details"] == {"position": 1, "exact": True}
    assert (await why(engine, second))["details"] == {"position": 2, "exact": True}


@on_the_engine
async def test_about_to_start(engine: Engine) -> None:
    await serve(engine)
    task_id = await engine.submit()
    assert await would_start(engine) == [task_id]
    assert await reason(engine, task_id) == "about-to-start"


@on_the_engine
async def test_a_backlog_is_counted_only_so_far(engine: Engine) -> None:
    await serve(engine)
    await engine.provide("probe", limit=1)
    await engine.sql(
        """
        INSERT INTO tasks (task_id, actor, provider, status, timeout_seconds, user_id)
        SELECT gen_random_uuid(), 'probe', 'probe', 'queued', 1, 'ann' FROM generate_series(1, 1500)
        """
    )
    await engine.sql("UPDATE tasks SET priority = 9 WHERE task_id IN (SELECT task_id FROM tasks LIMIT 900)")
    answer = await why(engine, await engine.submit())
    assert answer["details"] == {"position": 601, "exact": True}
    answer = await why(engine, await engine.submit(priority=9))
    assert (answer["reason"], answer["details"]["exact"]) == ("behind-others", False)
    assert answer["message"].startswith("at least ")


@on_the_engine
async def test_a_task_that_was_told_429_alone_waits_for_its_own_time(engine: Engine) -> None:
    await serve(engine)
    unlucky = await pause(engine)
    await let_the_time_pass(engine)
    await engine.completed()
    await be_told_429(engine, await engine.start(unlucky))
    assert await reason(engine, unlucky) == "waiting-for-time"
    assert await reason(engine, await engine.submit()) == "about-to-start"


@on_the_engine
async def test_what_the_dispatchers_last_said_of_rabbitmq(engine: Engine) -> None:
    await serve(engine)
    task_id = await engine.submit()
    await say_of_rabbitmq(engine, "one", "away")
    answer = await why(engine, task_id)
    assert answer["reason"] == "broker-away"
    assert answer["message"].startswith("RabbitMQ cannot be reached")
    await say_of_rabbitmq(engine, "two", "blocked")
    assert await reason(engine, task_id) == "broker-blocked"
    await say_of_rabbitmq(engine, "three", "connected")
    assert await reason(engine, task_id) == "about-to-start", "one that can ring is enough"
    await engine.sql("DELETE FROM service_reports WHERE instance_id = 'three'")
    await engine.sql("UPDATE service_reports SET reported_at = reported_at - interval '1 hour'")
    assert await reason(engine, task_id) == "about-to-start", "nobody was heard of lately"


async def say_of_rabbitmq(engine: Engine, instance: str, state: str) -> None:
    await reports.say(engine.pool, "dispatcher", instance, healthy=state == "connected", details={"broker": state})

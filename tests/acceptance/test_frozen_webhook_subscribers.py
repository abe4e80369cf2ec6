"""Subscribers of webhooks that are frozen before any of their calls: no end of a task waits for them."""

import time

from tests.support.engine.store import Engine, on_the_engine
from tests.support.engine.webhooks import Endpoint, a_key, answered, by_name, catch_up, ready, told_of
from tests.support.freezing_subscriber import all_ended, all_frozen, frozen_at

LONGEST_SECONDS = 2.5
CALLS_OF_AN_OUTCOME = 15
"""Begin, lock, rows, endpoint, outcomes, deliveries, tries, lock of the endpoint, its change, what waits, lock of the
tasks, their look, hold, delete, commit."""
CALLS_OF_A_MOVE = 14
"""Begin, lock, rows, tasks, endpoints, rights, lock of the endpoint, its state, time, deliveries, submit, hold, delete,
commit."""


async def named_endpoint(engine: Engine, number: int, *, ends: int) -> Endpoint:
    """With as many deliveries as tasks that name it have ended."""
    url = f"https://example.org/{number}"
    for _ in range(ends):
        task_id = await engine.completed(**told_of(**by_name(url)))
    row = await engine.row(task_id)
    assert row.webhook_id is not None
    return Endpoint(engine, row.webhook_id, url)


@on_the_engine
async def test_no_cancel_of_a_delivery_waits_for_a_frozen_judgement_of_its_endpoint(engine: Engine) -> None:
    await ready(engine)
    await a_key(engine, "ann")
    hooks = [await named_endpoint(engine, number, ends=2) for number in range(CALLS_OF_AN_OUTCOME)]
    await catch_up(engine)
    pairs = [await hook.deliveries() for hook in hooks]
    for hook, (first, _) in zip(hooks, pairs, strict=True):
        attempt = await hook.take(first)
        transition, fields = await answered(engine, attempt, 410)
        await engine.finish(attempt, transition, **fields)
    frozen = [frozen_at(engine.database_url, "delivery", hook.webhook_id, place) for place, hook in enumerate(hooks, 1)]
    try:
        await all_frozen(frozen)
        for _, other in pairs:
            began = time.monotonic()
            assert await engine.cancel(other.task_id) == "cancelled"
            assert time.monotonic() - began < LONGEST_SECONDS
    finally:
        await all_ended(frozen)
    for hook in hooks:
        assert await hook.state() == "gone"
        assert await hook.states() == ["held", "failed"]


@on_the_engine
async def test_no_end_waits_for_a_frozen_fan_out(engine: Engine) -> None:
    await ready(engine)
    await a_key(engine, "ann")
    hooks = [await named_endpoint(engine, number, ends=1) for number in range(CALLS_OF_A_MOVE)]
    await catch_up(engine)
    await engine.sql("UPDATE webhooks SET state = 'disabled'")
    tasks = [await engine.running(**told_of(**by_name(hook.url))) for hook in hooks]
    later = [await engine.running(**told_of(**by_name(hook.url))) for hook in hooks]
    for task in tasks:
        await engine.finish(task)
    frozen = [frozen_at(engine.database_url, "webhook", task.task_id, place) for place, task in enumerate(tasks, 1)]
    try:
        await all_frozen(frozen)
        for task in later:
            began = time.monotonic()
            assert await engine.finish(task) == "completed"
            assert time.monotonic() - began < LONGEST_SECONDS
    finally:
        await all_ended(frozen)
    for hook in hooks:
        assert len(await hook.deliveries()) == 3

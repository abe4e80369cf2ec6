"""A queue whose tasks wait for nobody: told of by name when it has lasted, and never while it mends itself."""

from typing import Any
from uuid import UUID

import pytest

from tests.support.engine.flow import change, open_the_breaker, pause, serve
from tests.support.engine.store import Engine, on_the_engine
from windlass.services.api.operators.health import look_at_components
from windlass.services.api.operators.room import Room
from windlass.shared.settings import Settings
from windlass.shared.store.operating import workers

GRACE = 60


async def unserved(engine: Engine) -> list[str]:
    return await workers.unserved_queues(engine.pool, for_seconds=GRACE)


async def waiting_for_long(engine: Engine, **fields: Any) -> UUID:
    """Since before all that the test does: nothing else happened lately either."""
    task_id = await engine.submit(**fields)
    await engine.sql(f"UPDATE tasks SET available_at = available_at - interval '{2 * GRACE} s'")
    return task_id


async def let_a_while_pass(engine: Engine) -> None:
    """Since whatever became of the provider and its workers."""
    await engine.sql(f"UPDATE provider_events SET at = at - interval '{2 * GRACE} s'")
    await engine.sql(f"UPDATE workers SET heartbeat_at = heartbeat_at - interval '{2 * GRACE} s'")


@on_the_engine
async def test_a_queue_that_nobody_serves_is_named_after_a_while(engine: Engine) -> None:
    await serve(engine, queue="probe.other")
    await engine.submit()
    assert await unserved(engine) == [], "a pool may be on its way"
    await engine.sql(f"UPDATE tasks SET available_at = available_at - interval '{2 * GRACE} s'")
    assert await unserved(engine) == ["probe.probe"]
    components = await look_at_components(engine.pool, Room(engine.pool), Settings(unserved_seconds=GRACE))
    assert components["workers"]["status"] == "degraded"
    assert components["workers"]["detail"].endswith("nobody serves them, in probe.probe")


@on_the_engine
async def test_a_queue_that_is_served_or_was_a_moment_ago_is_not(engine: Engine) -> None:
    await waiting_for_long(engine)
    await serve(engine)
    assert await unserved(engine) == []
    await workers.leave(engine.pool, "worker-1", state="stopped", reason="replaced")
    assert await unserved(engine) == [], "its successor starts"
    await let_a_while_pass(engine)
    assert await unserved(engine) == ["probe.probe"]


@on_the_engine
async def test_what_is_not_to_start_waits_for_no_worker(engine: Engine) -> None:
    await engine.submit(delay_seconds=3600)
    await engine.outlive(await waiting_for_long(engine, max_age_seconds=1))
    assert await unserved(engine) == []


@pytest.mark.parametrize("held_back", [{"paused": True}, {"limit": 0}, {"breaker": "open"}])
@on_the_engine
async def test_a_provider_that_an_operator_holds_back_wants_nobody_until_a_while_after(
    engine: Engine, held_back: dict[str, Any]
) -> None:
    await waiting_for_long(engine)
    await change(engine, **held_back)
    await let_a_while_pass(engine)
    assert await unserved(engine) == []
    await change(engine, **dict.fromkeys(held_back))
    assert await unserved(engine) == [], "its pool starts"
    await let_a_while_pass(engine)
    assert await unserved(engine) == ["probe.probe"]


@pytest.mark.parametrize("condition", [pause, open_the_breaker])
@on_the_engine
async def test_a_provider_that_rests_wants_nobody(engine: Engine, condition: Any) -> None:
    await condition(engine)
    await waiting_for_long(engine)
    await let_a_while_pass(engine)
    assert await unserved(engine) == []

"""What has ended since: each way counted, its cost added up, and no more looked at than is good for Postgres."""

from datetime import UTC, datetime, timedelta

from tests.support.engine.store import Engine, on_the_engine
from windlass.shared.store.reading.overview import ended_since


@on_the_engine
async def test_costs_are_added_up_and_only_the_latest_are_looked_at(engine: Engine) -> None:
    before = datetime.now(UTC) - timedelta(minutes=1)
    for cost in (0.25, 0.5):
        await engine.finish(await engine.running(user_id="ann"), usage={"cost_usd": cost})
    await engine.dead()
    rows, counted_from = await ended_since(engine.pool, before, owner=None)
    assert {row.status: (row.tasks, row.cost_usd) for row in rows} == {"completed": (2, 0.75), "dead": (1, None)}
    assert counted_from == before
    hers, _ = await ended_since(engine.pool, before, owner="ann")
    assert sum(row.tasks for row in hers if row.status == "completed") == 2
    assert await ended_since(engine.pool, before, owner="nobody") == ([], before)
    latest, counted_from = await ended_since(engine.pool, before, owner=None, at_most=2)
    assert sum(row.tasks for row in latest) == 2
    assert counted_from > before, "whoever was away for long hears from when on"

"""Ends of deliveries, their owner and the janitor on the same endpoints at once: nobody waits in a circle."""

import asyncio
import random

from tests.support.engine.locks.promises import DISAGREEING
from tests.support.engine.store import Engine, on_the_engine
from tests.support.engine.webhooks import Endpoint, catch_up, ready, told_of
from windlass.shared.features.webhooks import checks, endpoints
from windlass.shared.store import tasks
from windlass.shared.store.tasks import Claimed


async def deliver(endpoint: Endpoint, chance: random.Random) -> None:
    engine = endpoint.engine
    for delivery in chance.sample(await endpoint.deliveries(), 4):
        await engine.sql(
            "UPDATE tasks SET available_at = clock_timestamp() WHERE task_id = $1 AND held = '{}'", delivery.task_id
        )
        claimed = await engine.claim(delivery.task_id)
        if isinstance(claimed, Claimed):
            await endpoint.end(claimed, chance.choice([200, 500, 500, 500, 410]))


async def change(endpoint: Endpoint, chance: random.Random) -> None:
    pool, webhook_id = endpoint.engine.pool, endpoint.webhook_id
    for _ in range(4):
        delivery = chance.choice(await endpoint.deliveries())
        match chance.randrange(7):
            case 0:
                await endpoints.disable(pool, webhook_id)
            case 1:
                await endpoints.enable(pool, webhook_id, replay=chance.random() < 0.8)
            case 2:
                await endpoints.test(pool, webhook_id)
            case 3:
                await endpoints.redeliver(pool, delivery.delivery_id)
            case 4:
                await tasks.cancel(pool, delivery.task_id)
            case 5:
                await checks.probe(pool)
            case _:
                await checks.check(pool, held_most=10_000, held_days=30)


@on_the_engine
async def test_whoever_meets_whom_nobody_waits_in_a_circle_and_no_delivery_is_lost(engine: Engine) -> None:
    await ready(engine)
    await engine.sql("UPDATE actors SET concurrency_limit = 100 WHERE name = 'webhook'")
    chance = random.Random(23)
    hooks = [await Endpoint.made(engine, "task.*") for _ in range(3)]
    for _ in range(8):
        await engine.completed(**told_of())
    for _ in range(6):
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            for endpoint in hooks:
                for doing in (deliver, deliver, change, change):
                    group.create_task(doing(endpoint, chance))
                group.create_task(engine.completed(**told_of()))
    for endpoint in hooks:
        told = [each for each in await endpoint.deliveries() if each.type == "task.completed"]
        assert len(told) == 8 + 3 * 6, "one for each that ended"
        await endpoints.enable(engine.pool, endpoint.webhook_id, replay=True)
    await catch_up(engine)
    assert await engine.count("held && '{endpoint}'") == 0
    assert await engine.pool.fetch(DISAGREEING) == []

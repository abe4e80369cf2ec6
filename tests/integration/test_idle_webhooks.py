"""A thousand endpoints that nothing waits for: nobody asks after them one by one."""

import re
from typing import Any

import asyncpg

from tests.support.engine.store import Engine, on_the_engine
from tests.support.engine.webhooks import Endpoint, ready, told_of
from windlass.services.janitor.duties.endpoints import look_after_endpoints, recheck_endpoints
from windlass.shared.features.webhooks import checks
from windlass.shared.settings import Settings
from windlass.shared.store import webhooks

A_THOUSAND = """
INSERT INTO webhooks (webhook_id, user_id, url, events, secret, state, failing_since)
SELECT gen_random_uuid(), 'user ' || number, 'https://example.org/' || number, '{workflow.*}', '\\x00',
       (ARRAY['enabled', 'enabled', 'failing', 'disabled', 'gone'])[number % 5 + 1], now()
FROM generate_series(1, 1000) AS number;
INSERT INTO api_keys (key_id, secret_hash, role, user_id)
SELECT 'user ' || number, '', 'user', 'user ' || number FROM generate_series(1, 1000) AS number;
INSERT INTO global_subscriptions (bits) VALUES (4)
"""
LOOK = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {checks.WRITE.format(found=checks.DUE)}"


class Counting:
    """Passes on what it is asked for, and keeps count."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self.asked: list[str] = []

    async def fetchval(self, query: str, *values: object) -> Any:
        self.asked.append(query)
        return await self._pool.fetchval(query, *values)

    async def fetch(self, query: str, *values: object, **options: Any) -> Any:
        self.asked.append(query)
        return await self._pool.fetch(query, *values, **options)


async def statements(engine: Engine) -> int:
    """Of a round of all that looks after endpoints, or at them."""
    counting: Any = Counting(engine.pool)
    await look_after_endpoints(counting)
    await recheck_endpoints(counting, Settings())
    await webhooks.count_endpoints(counting)
    return len(counting.asked)


async def pages_of_a_look(engine: Engine) -> int:
    connection = await asyncpg.connect(engine.database_url)
    try:
        plans = [await connection.fetchval(LOOK, "{}") for _ in range(6)]  # the first ones plan as well
        return min(sum(map(int, re.findall(r"Shared (?:Hit|Read) Blocks\": (\d+)", each)[:2])) for each in plans)
    finally:
        await connection.close()


@on_the_engine
async def test_idle_endpoints_cost_no_statement(engine: Engine) -> None:
    await ready(engine)
    none, looked = await statements(engine), await pages_of_a_look(engine)
    await engine.sql(A_THOUSAND)
    await engine.sql("ANALYZE webhooks")
    assert await statements(engine) == none == 4
    assert await pages_of_a_look(engine) <= looked + 2, "it goes by indexes that idle ones are not in"
    counted = {
        each.state: (each.endpoints, each.given_up, each.waiting)
        for each in await webhooks.count_endpoints(engine.pool)
    }
    assert counted == {"enabled": (400, 0, 0), "failing": (200, 0, 0), "disabled": (200, 200, 0), "gone": (200, 0, 0)}
    endpoint = await Endpoint.made(engine, "task.*")
    await engine.completed(**told_of())
    assert len(await endpoint.deliveries()) == 1
    assert await engine.pool.fetchval("SELECT count(*) FROM deliveries") == 1, "nobody else hears of it"

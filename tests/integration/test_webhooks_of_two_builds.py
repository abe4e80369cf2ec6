"""While two builds run, each delivers the ends of its own workers, and either carries the deliveries of the other."""

import asyncio

from tests.support.engine.store import RULES, Engine, an_ending, an_engine
from tests.support.engine.webhooks import Endpoint, ready, told_of
from tests.support.older_build import OlderBuild
from windlass.shared import db
from windlass.shared.store.tasks import Claimed


async def end_by(engine: Engine, schema: str, attempt: Claimed, **fields: object) -> None:
    await engine.pool.fetch(
        f"SELECT * FROM {schema}.end_tasks($1::text::jsonb, $2::text::jsonb)",
        db.as_json([an_ending(attempt, "complete", **fields)]),
        db.as_json(RULES),
    )


def test_each_build_delivers_its_own_ends_and_carries_those_of_the_other(
    database_url: str, older_build: OlderBuild
) -> None:
    older_build.migrate(database_url)

    async def both() -> None:
        async with an_engine(database_url) as engine:
            await ready(engine)
            endpoint = await Endpoint.made(engine, "task.*")
            await end_by(engine, older_build.schema, await engine.running(**told_of()))
            await engine.completed(**told_of())
            by_older, by_newer = await endpoint.deliveries()
            assert [by_older.type, by_newer.type] == ["task.completed"] * 2
            await endpoint.answer(by_older, 200)
            attempt = await endpoint.take(by_newer)
            said = {"attempt": 1, "delivered": True, "status_code": 204, "elapsed_ms": 3, "error": None, "excerpt": ""}
            await end_by(engine, older_build.schema, attempt, checkpoint={"try": said})
            assert await endpoint.states() == ["delivered", "delivered"]
            assert [each.last_status for each in await endpoint.deliveries()] == [200, 204]
            assert (await endpoint.row()).last_success_at is not None

    asyncio.run(both())

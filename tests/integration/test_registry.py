"""The registry is rows: what is registered stays, what workers bring counts while they live, and the rest goes."""

import asyncio
from typing import Any

import msgspec

from tests.support.engine.running_versions import comes
from tests.support.engine.store import Engine, on_the_engine, until
from windlass.services.api.actors.registry import Registry
from windlass.services.api.streams.hub import Hub
from windlass.shared.actors.built_in import built_in
from windlass.shared.actors.definition import Definition
from windlass.shared.db import as_json
from windlass.shared.settings import Settings
from windlass.shared.store.flow_control import providers
from windlass.shared.store.operating import registry, workers

HEARD = 30.0


def translate(*fields: str, **options: Any) -> Definition:
    schema = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in fields},
        "additionalProperties": False,
    }
    own: dict[str, Any] = {"name": "translate", "module": "ours", "provider": "translate"}
    return Definition(**{**own, "payload_schema": schema, **options})


OLD, NEW = translate("text"), translate("text", "tone")


async def versions_of(engine: Engine) -> list[tuple[str, list[str], bool]]:
    rows = await registry.read(engine.pool, heard_within_seconds=HEARD, actor="translate")
    return [(row.version, row.workers, row.is_last) for row in rows]


async def counting(engine: Engine) -> list[str]:
    """What an api checks by."""
    api = Registry(Settings(), engine.pool)
    await api.look(engine.pool)
    return [each.version.name for each in api.actors["translate"].versions] if "translate" in api.actors else []


@on_the_engine
async def test_registering_again_changes_nothing_and_a_rollback_makes_the_old_one_the_last(engine: Engine) -> None:
    for _ in range(2):
        await registry.register(engine.pool, [OLD, *built_in().values()])
    assert await versions_of(engine) == [(OLD.version, [], True)]
    (row,) = await registry.read(engine.pool, heard_within_seconds=HEARD, actor="translate")
    assert msgspec.convert(row.definition, Definition) == OLD
    await registry.register(engine.pool, [NEW])
    assert await versions_of(engine) == [(NEW.version, [], True), (OLD.version, [], False)]
    assert await counting(engine) == [NEW.version], "nobody runs the old one"
    await registry.register(engine.pool, [OLD])
    assert await counting(engine) == [OLD.version]


@on_the_engine
async def test_a_version_counts_while_a_worker_of_it_lives(engine: Engine) -> None:
    await registry.register(engine.pool, [OLD])
    await comes(engine, "w-old", OLD)
    await registry.register(engine.pool, [NEW])
    assert await counting(engine) == [NEW.version, OLD.version]
    await workers.leave(engine.pool, "w-old", state="stopping", reason="told to")
    assert await counting(engine) == [NEW.version], "it takes nothing new"


@on_the_engine
async def test_a_stray_laptop_counts_while_it_is_there_and_leaves_nothing_behind(engine: Engine) -> None:
    await registry.register(engine.pool, [OLD])
    await comes(engine, "laptop", NEW)
    assert await counting(engine) == [OLD.version, NEW.version]
    await engine.pool.execute("UPDATE workers SET heartbeat_at = now() - interval '1 hour'")
    assert await counting(engine) == [OLD.version]


@on_the_engine
async def test_what_only_a_worker_has_told_is_known_also_when_it_has_gone(engine: Engine) -> None:
    await comes(engine, "w", NEW)
    await workers.leave(engine.pool, "w", state="stopped", reason="told to")
    assert await counting(engine) == [NEW.version]


@on_the_engine
async def test_what_nobody_has_run_for_long_is_dropped_when_a_newer_one_is_registered(engine: Engine) -> None:
    third = translate("text", "tone", "glossary")
    await registry.register(engine.pool, [OLD])
    await registry.register(engine.pool, [NEW])
    await comes(engine, "w-new", NEW)
    await engine.pool.execute("UPDATE actor_versions SET registered_at = registered_at - interval '8 days'")
    await registry.register(engine.pool, [third])
    assert [version for version, _, _ in await versions_of(engine)] == [third.version, NEW.version]
    await workers.leave(engine.pool, "w-new", state="stopped", reason="told to")
    await registry.register(engine.pool, [third])
    assert await versions_of(engine) == [(third.version, [], True)]


@on_the_engine
async def test_an_own_actor_has_a_provider_without_a_limit_and_a_queue_unless_a_table_says_otherwise(
    engine: Engine,
) -> None:
    await providers.configure(engine.pool, Settings(providers={"deepl": {"actor": "probe", "limit": 2}}))
    shared = translate("text", name="polish", provider="deepl", concurrency_limit=3)
    await registry.register(engine.pool, [OLD, shared])
    rows = await engine.pool.fetch(
        "SELECT name, actor, configured_limit FROM providers WHERE name IN ('translate', 'deepl')"
    )
    assert {tuple(row) for row in rows} == {("translate", "translate", None), ("deepl", "probe", 2)}
    queues = {(row.actor, row.provider) for row in await registry.queues(engine.pool)}
    assert {("translate", "translate"), ("polish", "deepl"), ("probe", "deepl")} <= queues
    limit = "SELECT concurrency_limit FROM actors WHERE name = 'polish'"
    assert await engine.pool.fetchval(limit) == 3
    await registry.announce(engine.pool, [translate("text", name="polish", provider="deepl", concurrency_limit=9)])
    assert await engine.pool.fetchval(limit) == 3, "what is registered goes before what a worker brings"


@on_the_engine
async def test_an_api_is_told_at_once_what_is_registered_and_who_comes_with_what(engine: Engine) -> None:
    """Not by its own looks: there is none for an hour."""
    settings = Settings(database_url=engine.database_url, safety_poll_seconds=3600)
    api = Registry(settings, engine.pool)
    hub = Hub(settings, {registry.CHANNEL: api.heard})
    running = [asyncio.create_task(hub.run()), asyncio.create_task(api.run())]

    async def knows(name: str, *expected: tuple[Definition, int]) -> None:
        """Waits for these versions, each with so many workers."""

        async def known() -> bool:
            actor = api.actors.get(name)
            versions = [(each.version.definition, len(each.workers)) for each in actor.versions] if actor else []
            return versions == list(expected)

        await until(known)

    try:
        with hub.subscribe(None) as subscription:
            assert await subscription.news(60), "it hears"
        await registry.register(engine.pool, [OLD])
        await knows("translate", (OLD, 0))
        await comes(engine, "w-new", NEW)
        await knows("translate", (OLD, 0), (NEW, 1))
        polish = translate("text", name="polish", provider="polish")
        await registry.announce(engine.pool, [polish])
        await knows("polish", (polish, 0))
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


@on_the_engine
async def test_a_row_that_this_build_cannot_read_takes_nobody_else_down(engine: Engine) -> None:
    await registry.register(engine.pool, [OLD])
    insert = "INSERT INTO actor_versions (actor, version, definition) VALUES ($1, 'v', $2::text::jsonb)"
    await engine.pool.execute(insert, "odd", as_json({"name": "odd"}))
    await engine.pool.execute(insert, "bad", as_json({"name": "bad", "payload_schema": {"$ref": "http://x/y"}}))
    api = Registry(Settings(), engine.pool)
    await api.look(engine.pool)
    assert {"translate", "probe"} <= api.actors.keys()
    assert not {"odd", "bad"} & api.actors.keys()


@on_the_engine
async def test_broken_queues_are_those_of_workers_that_live(engine: Engine) -> None:
    await comes(engine, "w", OLD)
    broken = {"resize.resize": "[actors.resize]: no module named our_app"}
    await engine.pool.execute("UPDATE workers SET broken = $1::text::jsonb", as_json(broken))
    assert [
        (row.queue, row.reason) for row in await workers.broken_queues(engine.pool, heard_within_seconds=HEARD)
    ] == [*broken.items()]
    (worker,) = await workers.newest(engine.pool)
    assert (worker.actor_versions, worker.broken) == ({"translate": OLD.version}, broken)
    await engine.pool.execute("UPDATE workers SET heartbeat_at = now() - interval '1 hour'")
    assert await workers.broken_queues(engine.pool, heard_within_seconds=HEARD) == [], "it was not heard of for long"
    await workers.leave(engine.pool, "w", state="stopped", reason="told to")
    assert await workers.broken_queues(engine.pool, heard_within_seconds=HEARD) == []

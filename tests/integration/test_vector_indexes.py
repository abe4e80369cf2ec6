"""pgvector, where the server has it: an index for each model, which finds what nobody would have compared."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from tests.support.engine.memory import HASH_ID
from tests.support.engine.store import Engine, an_engine, on_the_engine
from tests.support.servers.pgvector import HOW, a_postgres_with_pgvector, programs
from windlass.services.janitor.duties.vector_indexes import look_after_indexes
from windlass.shared.hashing import hashed
from windlass.shared.migrations.runner import migrate
from windlass.shared.settings import Settings
from windlass.shared.store.memory import models, searching
from windlass.shared.store.memory.indexing import FROM_EVENTS
from windlass.shared.store.memory.searching import Found, Scope

NEEDLE = "lihgthouse keeping in Norway"
"""Shares no word with what it looks for."""
OLD, RARE = "lighthousekeepings inNorway", "lighthousekeepings inNorways"
INDEXES = "SELECT indexname FROM pg_indexes WHERE indexname LIKE 'embeddings_near_%' ORDER BY 1"

KINDS = 200
"""Of each text: among thousands of the very same vectors, an index finds none of the others."""

EVENTS = """
INSERT INTO agent_events (event_id, task_id, life, attempt, user_id, actor, provider, status, title, text, lexemes,
                          gathered_at)
SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, gen_random_uuid(), 1, 1, $3::text, 'agent',
       'local', 'completed', said.text, said.text, to_tsvector('english', said.text), now()
FROM unnest($1::bigint[], $2::text[]) AS said(n, text)
"""
VECTORS = """
INSERT INTO embeddings (event_id, model_id, vector)
SELECT e.event_id, $1, ($3::real[])[(one.place - 1) * 256 + 1 : one.place * 256]
FROM unnest($2::text[]) WITH ORDINALITY AS one(title, place) JOIN agent_events e ON e.title = one.title
"""


async def remember(engine: Engine, numbers: range, text: str, user_id: str = "ann") -> None:
    """As many events, in the order of their numbers, each with its vector."""
    texts = [f"{text} {number % KINDS}" if len(numbers) > 1 else text for number in numbers]
    await engine.sql(EVENTS, list(numbers), texts, user_id)
    kinds = sorted(set(texts))
    await engine.sql(VECTORS, HASH_ID, kinds, [part for each in kinds for part in hashed(each)])


async def with_more_than_are_compared(engine: Engine) -> None:
    await remember(engine, range(1, 2), OLD)
    await remember(engine, range(2, 3), RARE, user_id="ben")
    await remember(engine, range(10, FROM_EVENTS + 20), "Summarise the quarterly report")
    await remember(engine, range(5000, 5000 + FROM_EVENTS), "Paint a boat", user_id="ben")


async def search(engine: Engine, scope: Scope) -> Found:
    return await searching.search(engine.pool, NEEDLE, scope, limit=3, user_id="ann")


async def indexes(engine: Engine) -> list[str]:
    return [row["indexname"] for row in await engine.pool.fetch(INDEXES)]


@asynccontextmanager
async def a_windlass_with_pgvector() -> AsyncIterator[tuple[Engine, Settings]]:
    async with a_postgres_with_pgvector() as url:
        await migrate(url)
        async with an_engine(url) as engine:
            yield engine, Settings(database_url=url)


@pytest.mark.skipif(programs() is None, reason=HOW)
def test_an_index_finds_what_is_old_and_shares_no_word() -> None:
    async def story() -> None:
        async with a_windlass_with_pgvector() as (engine, settings):
            await look_after_indexes(engine.pool, settings)
            assert await indexes(engine) == [], "few are compared one by one"
            await with_more_than_are_compared(engine)
            before = await search(engine, Scope("ann"))
            assert (before.exact, OLD in [hit.title for hit in before.hits]) == (False, False), "too old to be compared"
            await look_after_indexes(engine.pool, settings)
            assert await indexes(engine) == [f"embeddings_near_{HASH_ID.hex}"]
            await what_is_nearest_is_found(engine)
            await who_has_few_among_many_finds_them(engine)
            await models_have_their_own(engine, settings)

    asyncio.run(story())


async def what_is_nearest_is_found(engine: Engine) -> None:
    found = await search(engine, Scope("ann"))
    assert (found.hits[0].title, found.hits[0].matched, found.exact, found.coverage) == (OLD, ["vector"], False, 1.0)
    both = {hit.title for hit in (await search(engine, Scope(None))).hits[:2]}
    assert both == {OLD, RARE}, "everybody's"
    assert {hit.user_id for hit in (await search(engine, Scope("ben"))).hits} == {"ben"}
    assert (await search(engine, Scope("eve"))).hits == []


async def who_has_few_among_many_finds_them(engine: Engine) -> None:
    """What is not theirs is nearer, and more of it than one look at the index brings: the scan has to go on."""
    await remember(engine, range(10_000, 10_300), "lihgthouse keeping at Norway", user_id="ben")
    await engine.sql("UPDATE agent_events SET project_id = 'coast' WHERE title = $1", OLD)
    for scope in (Scope("ann"), Scope("ann", project_id="coast")):
        found = await search(engine, scope)
        assert found.hits[0].title == OLD
        assert {hit.user_id for hit in found.hits} == {"ann"}


async def models_have_their_own(engine: Engine, settings: Settings) -> None:
    """An index of each model's vectors alone, gone with it; one that was not finished is made again."""
    other = await models.create(engine.pool, name="same-width", provider="vectors", dimensions=256)
    wide = await models.create(engine.pool, name="too-wide", provider="vectors", dimensions=4096)
    assert other is not None
    assert wide is not None
    await engine.sql(VECTORS, other, ["Paint a boat 1"], hashed(NEEDLE))
    await engine.sql("UPDATE pg_index SET indisvalid = false WHERE indexrelid = $1::text::regclass",
                     f"embeddings_near_{HASH_ID.hex}")  # fmt: skip
    await look_after_indexes(engine.pool, settings)
    assert await indexes(engine) == sorted(f"embeddings_near_{each.hex}" for each in (HASH_ID, other))
    assert (await search(engine, Scope("ann"))).hits[0].title == OLD, "not what is nearer by the other model"
    assert await models.delete(engine.pool, other) == "building"
    await look_after_indexes(engine.pool, settings)
    assert await indexes(engine) == [f"embeddings_near_{HASH_ID.hex}"]


@pytest.mark.skipif(programs() is None, reason=HOW)
def test_who_may_not_make_the_extension_migrates_all_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    async def story() -> None:
        async with a_postgres_with_pgvector() as url:
            owner = await asyncpg.connect(url)
            await owner.execute("CREATE ROLE plain LOGIN PASSWORD 'plain'")
            await owner.execute("CREATE DATABASE theirs OWNER plain")
            await owner.close()
            theirs = url.replace(url.split("//")[1].split("@")[0], "plain:plain").rsplit("/", 1)[0] + "/theirs"
            await migrate(theirs)
            async with an_engine(theirs) as engine:
                await with_more_than_are_compared(engine)
                await look_after_indexes(engine.pool, Settings(database_url=theirs))
                assert await indexes(engine) == []
                found = await search(engine, Scope("ann"))
                assert (found.exact, found.degraded, bool(found.hits)) == (False, False, True)

    asyncio.run(story())


@on_the_engine
async def test_without_pgvector_the_newest_are_compared(engine: Engine) -> None:
    await engine.sql(
        "INSERT INTO embedding_models (model_id, name, provider, dimensions, state, is_filled)"
        " VALUES ($1, 'hash-256', 'hash', 256, 'active', true)",
        HASH_ID,
    )
    await with_more_than_are_compared(engine)
    await look_after_indexes(engine.pool, Settings(database_url=engine.database_url))
    found = await search(engine, Scope("ann"))
    assert (found.exact, found.degraded, bool(found.hits)) == (False, False, True)
    assert OLD not in [hit.title for hit in found.hits]

"""What agents did is found again: by words, by vectors of one model, and by nobody who may not see it."""

import asyncio
from uuid import UUID

from tests.support.engine.memory import an_agent, embed_all, events, gather_now, with_the_hash_model
from tests.support.engine.store import Engine, on_the_engine
from windlass.shared.hashing import hashed
from windlass.shared.store.memory import models, questions, searching
from windlass.shared.store.memory.searching import Found, Scope

EVERYBODY = Scope(None)


async def remember(engine: Engine, *prompts: str, **fields: str) -> None:
    for prompt in prompts:
        await an_agent(engine, prompt, **fields)
    await gather_now(engine)
    await embed_all(engine)


async def search(engine: Engine, question: str, scope: Scope = EVERYBODY, limit: int = 10) -> Found:
    return await searching.search(engine.pool, question, scope, limit=limit, user_id="ann")


def titles(found: Found) -> list[str]:
    return [hit.title for hit in found.hits]


@on_the_engine
async def test_words_and_vectors_find_together(engine: Engine) -> None:
    await with_the_hash_model(engine)
    await remember(
        engine, "Count the lighthouses of Norway", "Summarise the annual report", "Paint a lighthouse at dusk"
    )
    found = await search(engine, "lighthouse counting in Norway")
    assert titles(found)[0] == "Count the lighthouses of Norway"
    assert found.hits[0].matched == ["text", "vector"]
    assert found.hits[0].score > found.hits[1].score
    assert (found.model and found.model.name, found.coverage, found.exact, found.degraded) == (
        "hash-256", 1.0, True, False,
    )  # fmt: skip
    misspelt = await search(engine, "lihgthouses")
    assert titles(misspelt)[0] in {"Count the lighthouses of Norway", "Paint a lighthouse at dusk"}
    assert misspelt.hits[0].matched == ["vector"], "no word of it is there, and it is spelt alike"


@on_the_engine
async def test_who_may_not_see_an_event_finds_it_by_neither(engine: Engine) -> None:
    await with_the_hash_model(engine)
    await remember(engine, "the secret recipe of ann")
    await remember(engine, *(f"the secret recipe of ben {n}" for n in range(5)), user_id="ben")
    for question in ("secret recipe", "recipes secretive", "the"):
        found = await search(engine, question, Scope("ann"))
        assert {hit.user_id for hit in found.hits} <= {"ann"}
        assert found.coverage == 1.0
    assert {hit.user_id for hit in (await search(engine, "secret recipe")).hits} == {"ann", "ben"}
    assert (await search(engine, "secret recipe", Scope("eve"))).hits == []


@on_the_engine
async def test_scopes_are_inside_the_search(engine: Engine) -> None:
    await with_the_hash_model(engine)
    await remember(engine, "the old lighthouse", project_id="coast")
    await remember(engine, *(f"the lighthouse number {n}" for n in range(20)), project_id="sea")
    found = await search(engine, "lighthouse", Scope(None, project_id="coast"), limit=3)
    assert titles(found) == ["the old lighthouse"]
    newest = (await events(engine))[-2]
    assert len((await search(engine, "lighthouse", Scope(None, created_after=newest.at))).hits) == 1


@on_the_engine
async def test_what_has_no_vector_yet_is_found_by_its_words_and_the_coverage_says_so(engine: Engine) -> None:
    await with_the_hash_model(engine)
    await remember(engine, "one lighthouse")
    await an_agent(engine, "another lighthouse")
    await gather_now(engine)
    found = await search(engine, "lighthouse")
    assert found.coverage == 0.5
    assert {hit.title: hit.matched for hit in found.hits} == {
        "one lighthouse": ["text", "vector"],
        "another lighthouse": ["text"],
    }


@on_the_engine
async def test_vectors_of_two_models_are_never_compared(engine: Engine) -> None:
    await with_the_hash_model(engine)
    await engine.provide("vectors", limit=2, actors=("embed",))
    await remember(engine, "the lighthouse")
    other = await models.create(engine.pool, name="same-width", provider="vectors", dimensions=256)
    assert other is not None
    await models.activate(engine.pool, other)
    await questions.keep(engine.pool, other, "lighthouse", hashed("the lighthouse"))
    found = await search(engine, "lighthouse")
    assert found.coverage == 0.0
    assert [hit.matched for hit in found.hits] == [["text"]], "its vector is of the other model"


@on_the_engine
async def test_without_a_vector_for_the_question_words_alone_answer(engine: Engine) -> None:
    await with_the_hash_model(engine)
    await engine.provide("vectors", limit=2, actors=("embed",))
    await remember(engine, "the lighthouse")
    other = await models.create(engine.pool, name="far", provider="vectors", dimensions=4)
    assert other is not None
    await models.activate(engine.pool, other)
    found = await search(engine, "lighthouse")
    assert (found.degraded, found.coverage, titles(found)) == (True, None, ["the lighthouse"])
    assert await engine.count("actor = 'embed' AND status = 'queued' AND priority = 0") == 1
    await search_again_while_somebody_embeds(engine, other)


async def search_again_while_somebody_embeds(engine: Engine, model_id: UUID) -> None:
    """The same question waits for the same task, and is answered as soon as the vector is there."""
    model = await models.active(engine.pool)
    assert model is not None
    asking = asyncio.create_task(questions.vector_of(engine.pool, model, "lighthouse", user_id="ann", wait_seconds=120))
    await questions.keep(engine.pool, model_id, "lighthouse", [1.0, 0, 0, 0])
    assert await asking == [1.0, 0, 0, 0]
    found = await search(engine, "lighthouse")
    assert not found.degraded
    assert await engine.count("actor = 'embed' AND priority = 0") == 1
    await engine.sql("UPDATE question_vectors SET created_at = created_at - interval '2 h'")
    await questions.forget(engine.pool)
    assert await engine.pool.fetchval("SELECT count(*) FROM question_vectors") == 0


@on_the_engine
async def test_without_a_model_words_answer_and_nothing_in_them_is_an_error(engine: Engine) -> None:
    await with_the_hash_model(engine)
    await remember(engine, "the lighthouse")
    await engine.sql("DELETE FROM embedding_models")
    for question in ("lighthouse", "light:* & (house", "'", "the", "!!", "🚢", "a | b & !c"):
        assert (await search(engine, question)).degraded
    assert titles(await search(engine, "lighthouse")) == ["the lighthouse"]

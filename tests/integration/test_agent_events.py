"""What agents did is written down with their ends: once for each life, by nobody's leave and in nobody's way."""

import asyncpg

from tests.support.engine.memory import REMEMBERED, an_agent, events
from tests.support.engine.store import RULES, Engine, a_submission, an_ending, on_the_engine
from windlass.services.janitor.duties.expired import bury_expired
from windlass.shared import db
from windlass.shared.actors.terms import terms_of
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.functions import named
from windlass.shared.store.memory import events as agent_events
from windlass.shared.submission.known import built_in_actors


@on_the_engine
async def test_an_end_writes_down_what_was_asked_what_came_out_and_how_it_ended(engine: Engine) -> None:
    task_id = await an_agent(engine, "Count the lighthouses\nof Norway", "There are 212", project_id="coast")
    (event,) = await events(engine)
    assert (event.task_id, event.life, event.attempt, event.user_id) == (task_id, 1, 1, "ann")
    assert (event.status, event.title, event.project_id) == ("completed", "Count the lighthouses", "coast")
    assert event.text == "Count the lighthouses\nof Norway\n\nThere are 212"


@on_the_engine
async def test_each_life_of_a_task_has_one_event_however_it_ends(engine: Engine) -> None:
    attempt = await engine.running(payload={"prompt": "x"}, **REMEMBERED)
    assert await engine.finish(attempt, "retry") == "retrying"
    assert await events(engine) == [], "it has not ended"
    await engine.become_due(attempt.task_id)
    await engine.finish(await engine.start(attempt.task_id), "bury")
    await engine.revive(attempt.task_id)
    await engine.cancel(attempt.task_id)
    await engine.revive(attempt.task_id)
    await engine.finish(await engine.start(attempt.task_id), result="well")
    told = await events(engine)
    assert [(each.life, each.status) for each in told] == [(1, "dead"), (2, "cancelled"), (3, "completed")]
    assert told[0].text.endswith("ServiceUnavailable: busy")
    assert told[0].data == {"error_type": "ServiceUnavailable"}
    assert told[2].text.endswith("well")


@on_the_engine
async def test_who_never_ran_is_written_down_too(engine: Engine) -> None:
    parent = await engine.running()
    buried = await engine.submit(depends_on=[parent.task_id], **REMEMBERED)
    old = await engine.submit(**REMEMBERED)
    await engine.outlive(old)
    await bury_expired(engine.pool)
    await engine.finish(parent, "bury")
    assert {(each.task_id, each.data["error_type"]) for each in await events(engine)} == {
        (buried, "DependencyFailed"),
        (old, "Expired"),
    }


@on_the_engine
async def test_a_probe_leaves_nothing_behind(engine: Engine) -> None:
    await engine.completed()
    await engine.dead()
    assert await events(engine) == []


@on_the_engine
async def test_a_late_event_describes_the_life_that_ended(engine: Engine) -> None:
    """While memory fails, tasks end as usual. Handled later, each event has the error of its own life."""
    await engine.sql("ALTER TABLE agent_events ADD CONSTRAINT none CHECK (false) NOT VALID")
    try:
        attempts = [await engine.running(payload={"prompt": "late"}, **REMEMBERED) for _ in range(20)]
        endings = [an_ending(each, "bury") for each in attempts]
        assert await tasks.end(engine.pool, endings, RULES) == ["dead"] * 20
        assert await events(engine) == []
        assert await engine.pool.fetchval("SELECT count(*) FROM outbox") == 20
        await engine.revive(attempts[0].task_id)
    finally:
        await engine.sql("ALTER TABLE agent_events DROP CONSTRAINT none")
    await engine.sql("UPDATE outbox_subjects SET next_try_at = clock_timestamp()")
    assert {each.task_id for each in await events(engine)} == {each.task_id for each in attempts}
    assert {each.text for each in await events(engine)} == {"late\n\nServiceUnavailable: busy"}
    await engine.finish(await engine.start(attempts[0].task_id))
    assert len(await events(engine)) == 21


@on_the_engine
async def test_a_long_story_is_cut_short(engine: Engine) -> None:
    await an_agent(engine, "word " * 5000, "answer " * 5000)
    (event,) = await events(engine)
    assert 3900 < len(event.text) <= 4002
    assert len(event.title) <= 120


@on_the_engine
async def test_a_deleted_event_takes_its_vectors_along(engine: Engine) -> None:
    await an_agent(engine, "forget me")
    (event,) = await events(engine)
    await engine.sql("INSERT INTO embeddings (event_id, model_id) VALUES ($1, gen_random_uuid())", event.event_id)
    await agent_events.delete(engine.pool, event.event_id)
    assert await events(engine) == []
    assert await engine.pool.fetchval("SELECT count(*) FROM embeddings") == 0


@on_the_engine
async def test_only_the_end_of_a_subscribed_task_writes_to_the_outbox(engine: Engine) -> None:
    plain = await engine.running()
    remembered = db.as_json([an_ending(await engine.running(**REMEMBERED), "complete")])
    connection = await asyncpg.connect(engine.database_url, server_settings={"track_functions": "all"})
    called = (
        "SELECT funcname FROM pg_stat_xact_user_functions WHERE calls > 0 AND funcname ~ '^(write_moves|write_outbox)'"
    )
    end = f"SELECT * FROM {named('end_tasks')}($1::text::jsonb, $2::text::jsonb)"
    try:
        transaction = connection.transaction()
        await transaction.start()
        await tasks.submit(connection, [a_submission(**REMEMBERED)])
        assert await connection.fetch(called) == []
        await transaction.rollback()
        for endings, functions in (
            (db.as_json([an_ending(plain, "complete")]), set()),
            (remembered, {"write_moves", "write_outbox"}),
        ):
            transaction = connection.transaction()
            await transaction.start()
            await connection.fetch(end, endings, db.as_json(RULES))
            assert {row["funcname"] for row in await connection.fetch(called)} == functions
            await transaction.rollback()
    finally:
        await connection.close()


def test_memory_can_be_switched_off() -> None:
    def remembered(settings: Settings) -> set[str]:
        return {name for name, each in built_in_actors().items() if terms_of(each.definition, settings).is_remembered}

    assert remembered(Settings()) == {"agent", "media", "summarize"}
    assert remembered(Settings(memory=False)) == set()
    assert remembered(Settings(actors={"media": {"memory": False}})) == {"agent", "summarize"}

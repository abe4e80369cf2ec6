"""Events become jobs of up to 64, jobs become vectors; what a provider refuses stands alone at last, and is listed."""

import asyncio

from tests.support.engine.memory import (
    HASH_ID,
    an_agent,
    catch_up,
    embed_all,
    events,
    gather_now,
    waiting_jobs,
    with_the_hash_model,
)
from tests.support.engine.store import Engine, on_the_engine
from windlass.shared.store import tasks
from windlass.shared.store.memory import events as agent_events
from windlass.shared.store.memory import jobs, models


async def many(engine: Engine, number: int) -> None:
    """So many events, written as the teller would."""
    await engine.sql(
        """
        INSERT INTO agent_events (event_id, task_id, life, attempt, user_id, actor, provider, status, title, text)
        SELECT ('0198c0de-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, gen_random_uuid(), 1, 1, 'ann', 'agent',
               'local', 'completed', 'number ' || n, 'number ' || n
        FROM generate_series(1, $1) AS n
        """,
        number,
    )


async def come_later(engine: Engine, *, hours: int) -> None:
    """Than they did: however long it takes to look at them, none has waited."""
    await engine.sql("UPDATE agent_events SET at = at + make_interval(hours => $1)", hours)


async def count(engine: Engine, what: str) -> int:
    number: int = await engine.pool.fetchval(f"SELECT count(*) FROM {what}")
    return number


@on_the_engine
async def test_events_wait_for_company_and_not_for_ever(engine: Engine) -> None:
    await with_the_hash_model(engine)
    await an_agent(engine, "alone")
    await come_later(engine, hours=1)
    assert 0 < await jobs.gather(engine.pool) <= 3600 + 5
    assert await waiting_jobs(engine) == []
    await come_later(engine, hours=-1)
    await gather_now(engine)
    (job,) = await waiting_jobs(engine)
    (event,) = await events(engine)
    assert job.event_ids == [event.event_id]
    task = await engine.row(job.task_id)
    assert (task.actor, task.provider, task.priority, task.user_id) == ("embed", "hash", 9, "system")
    assert await engine.pool.fetchval("SELECT lexemes::text FROM agent_events") == "'alon':1B,2 'done':3"


@on_the_engine
async def test_a_crowd_is_gathered_at_once_each_event_in_one_job(engine: Engine) -> None:
    await with_the_hash_model(engine)
    await many(engine, 150)
    await come_later(engine, hours=1)
    await asyncio.gather(*(jobs.gather(engine.pool) for _ in range(4)))
    found = await waiting_jobs(engine)
    assert sorted(len(each.event_ids) for each in found) == [64, 64], "22 wait for company"
    assert len({event for each in found for event in each.event_ids}) == 128


@on_the_engine
async def test_a_job_is_done_when_its_task_is_and_every_event_has_its_vector(engine: Engine) -> None:
    await with_the_hash_model(engine)
    await many(engine, 70)
    await gather_now(engine)
    assert await embed_all(engine) == 2
    assert await count(engine, "embeddings WHERE cardinality(vector) = 256") == 70
    assert await count(engine, "embedding_jobs WHERE state = 'done'") == 2
    assert await count(engine, "agent_events WHERE actor = 'embed'") == 0, "embedding feeds nothing back"


@on_the_engine
async def test_a_refused_text_does_not_block_the_others(engine: Engine) -> None:
    """The job is halved until the text stands alone; its job stays listed, and can be retried."""
    await with_the_hash_model(engine)
    await many(engine, 64)
    await gather_now(engine)
    calls = 0
    bad = (await events(engine))[17].event_id
    while waiting := await waiting_jobs(engine):
        for job in waiting:
            calls += 1
            attempt = await engine.start(job.task_id)
            if bad not in job.event_ids:
                found = await jobs.of_model(engine.pool, job.job_id)
                assert found is not None
                texts = await jobs.texts(engine.pool, found)
                vectors = [[1.0] * 256 for _ in texts]
                await jobs.keep_vectors(engine.pool, HASH_ID, [each.event_id for each in texts], vectors)
                await engine.finish(attempt)
            elif len(job.event_ids) > 1:
                assert await jobs.split(engine.pool, attempt, job.job_id)
                assert not await jobs.split(engine.pool, attempt, job.job_id), "once"
                await engine.finish(attempt)
            else:
                await engine.finish(attempt, "bury")
    assert calls == 13, "six halvings"
    assert await count(engine, "embeddings WHERE vector IS NOT NULL") == 63
    await catch_up(engine)
    (failed,) = await jobs.newest(engine.pool, state="failed", before=None, limit=10)
    assert failed.event_ids == [bad]
    assert failed.error == {"type": "ServiceUnavailable", "message": "busy"}

    assert await tasks.revive(engine.pool, failed.task_id)
    assert await embed_all(engine) == 1
    assert await count(engine, "embeddings WHERE vector IS NULL") == 0
    assert await count(engine, "embedding_jobs WHERE state <> 'done'") == 0


@on_the_engine
async def test_a_job_whose_worker_is_gone_for_good_is_listed(engine: Engine) -> None:
    await with_the_hash_model(engine)
    await many(engine, 3)
    await gather_now(engine)
    (job,) = await waiting_jobs(engine)
    await engine.cancel(job.task_id)
    await catch_up(engine)
    (failed,) = await jobs.newest(engine.pool, state="failed", before=None, limit=10)
    assert (failed.job_id, failed.error) == (job.job_id, {"type": "cancelled", "message": "cancelled"})


@on_the_engine
async def test_a_deleted_event_is_not_embedded(engine: Engine) -> None:
    await with_the_hash_model(engine)
    await many(engine, 2)
    await gather_now(engine)
    gone, kept = [each.event_id for each in await events(engine)]
    await agent_events.delete(engine.pool, gone)
    assert await embed_all(engine) == 1
    assert await engine.pool.fetchval("SELECT array_agg(event_id) FROM embeddings") == [kept]


@on_the_engine
async def test_a_new_model_gets_new_events_and_by_and_by_the_old_ones_newest_first(engine: Engine) -> None:
    await with_the_hash_model(engine)
    await engine.provide("vectors", limit=2, actors=("embed",))
    await many(engine, 400)
    await gather_now(engine)
    await embed_all(engine)
    other = await models.create(engine.pool, name="wide", provider="vectors", dimensions=8)
    assert other is not None
    assert await models.create(engine.pool, name="wide", provider="vectors", dimensions=8) is None
    await an_agent(engine, "new")
    await gather_now(engine)
    assert sorted(len(each.event_ids) for each in await waiting_jobs(engine)) == [1, 1], "one for each model"
    assert await jobs.backfill(engine.pool) == jobs.MOST_FILLING - 1, "new events go before old ones"
    newest = max(await waiting_jobs(engine), key=lambda job: len(job.event_ids)).event_ids
    assert len(newest) == 64
    while await embed_all(engine):
        await jobs.backfill(engine.pool)
    await jobs.backfill(engine.pool)
    assert await count(engine, f"embeddings WHERE model_id = '{other}' AND cardinality(vector) = 8") == 401
    assert await count(engine, f"embedding_models WHERE model_id = '{other}' AND is_filled") == 1
    assert await jobs.backfill(engine.pool) == 0


@on_the_engine
async def test_a_model_takes_over_by_itself_once_it_is_filled_if_it_was_made_so(engine: Engine) -> None:
    await with_the_hash_model(engine)
    await engine.provide("vectors", limit=2, actors=("embed",))
    await many(engine, 70)
    await gather_now(engine)
    await embed_all(engine)
    patient = await models.create(engine.pool, name="patient", provider="vectors", dimensions=8)
    eager = await models.create(engine.pool, name="eager", provider="vectors", dimensions=8, activate_when_filled=True)
    assert (patient is not None, await models.activate_filled(engine.pool)) == (True, None)
    await jobs.backfill(engine.pool)
    assert await models.activate_filled(engine.pool) is None, "its jobs wait"
    while await embed_all(engine):
        await jobs.backfill(engine.pool)
    assert await models.activate_filled(engine.pool) == eager
    assert {row.name: (row.state, row.vectors) for row in await models.every(engine.pool)} == {
        "hash-256": ("retired", 70), "patient": ("building", 70), "eager": ("active", 70),
    }  # fmt: skip
    await models.activate(engine.pool, HASH_ID)
    assert await models.activate_filled(engine.pool) is None, "nobody is overruled"


@on_the_engine
async def test_one_model_is_active_and_a_retired_one_catches_up_when_it_comes_back(engine: Engine) -> None:
    await with_the_hash_model(engine)
    await engine.provide("vectors", limit=2, actors=("embed",))
    other = await models.create(engine.pool, name="wide", provider="vectors", dimensions=8)
    assert other is not None
    async with asyncio.TaskGroup() as group:
        for number in range(6):
            group.create_task(models.activate(engine.pool, (other, HASH_ID)[number % 2]))
    assert await count(engine, "embedding_models WHERE state = 'active'") == 1
    await models.activate(engine.pool, other)
    await an_agent(engine, "while hash-256 was retired")
    await gather_now(engine)
    assert [each.model_id for each in await waiting_jobs(engine)] == [other]
    await embed_all(engine)
    assert await models.activate(engine.pool, HASH_ID)
    assert await jobs.backfill(engine.pool) == 1
    assert [each.model_id for each in await waiting_jobs(engine)] == [HASH_ID]
    assert await models.delete(engine.pool, HASH_ID) == "active"
    assert await models.delete(engine.pool, other) == "retired"
    assert await count(engine, f"embeddings WHERE model_id = '{other}'") == 0
    assert [each.model_id for each in await models.every(engine.pool)] == [HASH_ID]

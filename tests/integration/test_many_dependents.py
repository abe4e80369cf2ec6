"""A parent with thousands of dependents: its own end tells a page of them at most, and the janitor tells the rest."""

from uuid import UUID

from tests.support.engine.graphs import bury, complete
from tests.support.engine.store import RULES, Engine, an_ending, on_the_engine
from windlass.shared.filters import Filter
from windlass.shared.states import State
from windlass.shared.store import tasks
from windlass.shared.store.functions import named
from windlass.shared.store.operating import queues
from windlass.shared.store.tasks import bulk, dependencies
from windlass.shared.store.tasks.dependencies import DEPENDENTS_AT_ONCE

MANY = 2 * DEPENDENTS_AT_ONCE + 100


async def settle_all(engine: Engine) -> int:
    """How many pages there were to settle."""
    pages = 0
    while await dependencies.settle_next(engine.pool):
        pages += 1
    return pages


async def in_state(engine: Engine, status: str, task_ids: list[UUID]) -> int:
    number: int = await engine.pool.fetchval(
        "SELECT count(*) FROM tasks WHERE status = $1 AND task_id = ANY ($2)", status, task_ids
    )
    return number


@on_the_engine
async def test_few_dependents_are_told_in_the_end_itself(engine: Engine) -> None:
    parent = await engine.submit()
    children = await engine.submit_many(DEPENDENTS_AT_ONCE, depends_on=[parent])
    await complete(engine, parent)
    assert await in_state(engine, "queued", children) == len(children)
    assert await settle_all(engine) == 0


@on_the_engine
async def test_many_are_left_to_the_janitor_which_is_called(engine: Engine) -> None:
    parent = await engine.submit()
    children = await engine.submit_many(MANY, depends_on=[parent])
    (grandchild,) = await engine.submit_many(1, depends_on=[children[-1]])
    async with engine.listening("windlass_settle") as heard:
        await bury(engine, parent)
    assert heard == [""]
    assert await in_state(engine, "blocked", children) == MANY, "the end waits for none of them"
    assert await settle_all(engine) == 3
    assert await in_state(engine, "dead", [*children, grandchild]) == MANY + 1
    assert (await engine.row(grandchild))["error"]["details"] == {"task_id": str(children[-1])}
    assert await engine.story(children[0]) == ["submit", "bury"]
    assert await queues.mend_tallies(engine.pool) == 0


@on_the_engine
async def test_a_parent_of_many_does_not_hold_up_the_dependents_of_others(engine: Engine) -> None:
    large, small = await engine.submit_many(2)
    await engine.submit_many(MANY, depends_on=[large])
    few = await engine.submit_many(3, depends_on=[small])
    attempts = [await engine.start(large), await engine.start(small)]
    await tasks.end(engine.pool, [an_ending(attempt, "complete") for attempt in attempts], RULES)
    assert await in_state(engine, "queued", few) == 3


@on_the_engine
async def test_those_that_wait_for_somebody_else_as_well_are_passed_over_once(engine: Engine) -> None:
    done, open_ = await engine.submit_many(2)
    children = await engine.submit_many(MANY, depends_on=[done, open_])
    await complete(engine, done)
    assert await settle_all(engine) == 3
    assert await engine.count("status = 'blocked' AND unmet = 1") == MANY
    await complete(engine, open_)
    await settle_all(engine)
    assert await in_state(engine, "queued", children) == MANY


@on_the_engine
async def test_a_large_family_is_cancelled_and_comes_back_page_by_page(engine: Engine) -> None:
    parent = await engine.submit()
    children = await engine.submit_many(MANY, depends_on=[parent])
    await engine.cancel(parent)
    await settle_all(engine)
    assert await in_state(engine, "dead", children) == MANY
    assert await engine.revive(parent) == "queued"
    assert await in_state(engine, "dead", children) == MANY, "nobody waits for them"
    await settle_all(engine)
    assert await in_state(engine, "blocked", children) == MANY
    assert await queues.mend_tallies(engine.pool) == 0


@on_the_engine
async def test_a_revival_reaches_all_even_when_the_parent_has_completed_meanwhile(engine: Engine) -> None:
    parent = await engine.submit()
    children = await engine.submit_many(MANY, depends_on=[parent])
    await bury(engine, parent)
    await settle_all(engine)
    await engine.revive(parent)
    assert await dependencies.settle_next(engine.pool)
    await complete(engine, parent)
    await settle_all(engine)
    assert await in_state(engine, "queued", children) == MANY


@on_the_engine
async def test_a_revival_overtakes_a_burial_that_is_not_finished(engine: Engine) -> None:
    parent = await engine.submit()
    children = await engine.submit_many(MANY, depends_on=[parent])
    await bury(engine, parent)
    assert await dependencies.settle_next(engine.pool)
    await engine.revive(parent)
    await settle_all(engine)
    assert await in_state(engine, "blocked", children) == MANY


@on_the_engine
async def test_a_bulk_cancel_tells_a_page_at_a_time(engine: Engine) -> None:
    parents = await engine.submit_many(3)
    for parent in parents:
        await engine.submit_many(DEPENDENTS_AT_ONCE, depends_on=[parent])
    wanted = Filter(status=[State.QUEUED])
    job = await bulk.accept(engine.pool, parents[0], "cancel", wanted, matched=3, user_id="ann", scope_user_id=None)
    await bulk.advance(engine.pool, job, parents)
    assert await engine.count("status = 'dead'") == DEPENDENTS_AT_ONCE
    await settle_all(engine)
    assert await engine.count("status = 'dead'") == 3 * DEPENDENTS_AT_ONCE


@on_the_engine
async def test_a_dependent_costs_the_same_however_many_have_ended(engine: Engine) -> None:
    """The plan is kept from when there was nothing: it must not walk through all that ever failed."""
    async with engine.pool.acquire() as connection:
        await dependencies.settle_next(connection)
        await connection.execute(f"SELECT {named('settle_children')}(ARRAY[gen_random_uuid()])")
        await engine.sql(
            """
            INSERT INTO tasks (task_id, actor, provider, status, payload, error, timeout_seconds, completed_at, user_id)
            SELECT gen_random_uuid(), 'probe', 'probe', 'dead', '{}', '{"type": "X"}', 1, now(), 'ann'
            FROM generate_series(1, 10000)
            """
        )
        parent = await engine.submit()
        await engine.submit_many(DEPENDENTS_AT_ONCE + 1, depends_on=[parent])
        await bury(engine, parent)
        async with connection.transaction():
            before = await connection.fetchval(BLOCKS)
            assert await dependencies.settle_next(connection)
            blocks = await connection.fetchval(BLOCKS) - before
    assert blocks < 100 * DEPENDENTS_AT_ONCE, f"{blocks / DEPENDENTS_AT_ONCE:.0f} blocks for each"


BLOCKS = """
SELECT sum(pg_stat_get_xact_blocks_fetched(oid))::bigint FROM pg_class
WHERE relname IN ('tasks', 'task_dependencies') OR oid IN (
    SELECT indexrelid FROM pg_index WHERE indrelid IN ('tasks'::regclass, 'task_dependencies'::regclass))
"""


@on_the_engine
async def test_looking_at_the_blocked_again_locks_nobody(engine: Engine) -> None:
    parent = await engine.submit()
    await engine.submit_many(50, depends_on=[parent])
    lockers = "SELECT array_agg(xmax::text ORDER BY task_id) FROM tasks"
    before = await engine.pool.fetchval(lockers)
    assert await dependencies.recheck(engine.pool) == (None, 0)
    assert await engine.pool.fetchval(lockers) == before


@on_the_engine
async def test_the_blocked_are_looked_at_again_page_by_page(engine: Engine) -> None:
    parent = await engine.submit()
    children = await engine.submit_many(dependencies.BLOCKED_AT_ONCE + 1, depends_on=[parent])
    await engine.sql("UPDATE tasks SET status = 'completed', completed_at = now() WHERE task_id = $1", parent)
    reached, mended = await dependencies.recheck(engine.pool)
    assert (reached, mended) == (children[-2], dependencies.BLOCKED_AT_ONCE)
    assert await dependencies.recheck(engine.pool, reached) == (None, 1)
    assert await in_state(engine, "queued", children) == len(children)

"""A task of a newer level is left alone by every move: what its moves have to do is not known here."""

from uuid import UUID

from tests.support.engine.dispatching import HEARD_WITHIN, would_start
from tests.support.engine.flow import serve
from tests.support.engine.store import Engine, on_the_engine
from windlass.services.janitor.duties.blocked import recheck_blocked
from windlass.services.janitor.duties.expired import bury_expired
from windlass.shared.holds import Hold
from windlass.shared.reasons import Reason
from windlass.shared.store import functions, tasks
from windlass.shared.store.flow_control import providers
from windlass.shared.store.functions import named
from windlass.shared.store.operating import reconciliation
from windlass.shared.store.operating.looks import look
from windlass.shared.store.rows import TaskRow
from windlass.shared.store.tasks import Refused

NEWER = functions.LEVEL + 1


async def become_newer(engine: Engine, *task_ids: UUID) -> list[TaskRow]:
    """As if a newer version had submitted them."""
    await engine.sql("UPDATE tasks SET level = $2 WHERE task_id = ANY ($1)", list(task_ids), NEWER)
    return [await engine.row(each) for each in task_ids]


async def left_alone(engine: Engine, *before: TaskRow) -> bool:
    return [dict(await engine.row(row.task_id)) for row in before] == [dict(row) for row in before]


@on_the_engine
async def test_a_plain_task_has_no_level_and_another_the_one_that_was_submitted(engine: Engine) -> None:
    assert (await engine.row(await engine.submit())).level == 0
    assert (await engine.row(await engine.submit(level=NEWER))).level == NEWER
    assert (await engine.running(level=functions.LEVEL)).attempt == 1


@on_the_engine
async def test_a_claim_is_refused(engine: Engine) -> None:
    await serve(engine)
    task_id = await engine.submit()
    assert await would_start(engine) == [task_id]
    (before,) = await become_newer(engine, task_id)
    async with engine.listening("windlass_dispatch") as calls:
        assert await engine.claim(task_id) == Refused(task_id, Reason.NEWER_LEVEL)
    assert calls == []
    assert await left_alone(engine, before)
    assert await would_start(engine) == []


@on_the_engine
async def test_nobody_is_rung_for_whom_this_version_may_not_start(engine: Engine) -> None:
    await serve(engine)
    await engine.provide("probe", limit=1)
    await engine.submit(level=NEWER, priority=0)
    assert await providers.look(engine.pool, heard_within_seconds=HEARD_WITHIN) == []
    plain = await engine.submit()
    assert await would_start(engine) == [plain]


@on_the_engine
async def test_no_end_is_written(engine: Engine) -> None:
    attempt = await engine.running()
    (before,) = await become_newer(engine, attempt.task_id)
    for transition in ("complete", "retry", "bury", "interrupt"):
        assert await engine.finish(attempt, transition) is None
    assert await left_alone(engine, before)


@on_the_engine
async def test_a_cancel_and_a_revival_change_nothing(engine: Engine) -> None:
    rows = await become_newer(engine, await engine.submit(), (await engine.running()).task_id, await engine.dead())
    for row in rows:
        assert await engine.cancel(row.task_id) == row.status
        assert await engine.revive(row.task_id) == row.status
    assert await left_alone(engine, *rows)


@on_the_engine
async def test_a_janitor_passes_over_them_and_comes_to_an_end(engine: Engine) -> None:
    attempt, old = await engine.running(), await engine.submit(max_age_seconds=60)
    rows = await become_newer(engine, attempt.task_id, old)
    await engine.lapse(attempt.task_id, seconds_ago=1000)
    await engine.sql("UPDATE tasks SET expires_at = now() - interval '1000 s' WHERE task_id = $1", old)
    rows = [await engine.row(row.task_id) for row in rows]
    assert await tasks.stall(engine.pool, expired_for_seconds=None, dead_workers=["worker-1"]) == []
    assert await tasks.stall(engine.pool) == []
    await bury_expired(engine.pool)
    assert await left_alone(engine, *rows)
    assert (await look(engine.pool)).lease_seconds is None, "else it would look again at once, for ever"
    found = await reconciliation.count_unaccounted(engine.pool, after_seconds=60, heard_within_seconds=30)
    assert set(found.values()) == {0}


@on_the_engine
async def test_a_plain_parent_ends_and_leaves_its_newer_child_to_a_newer_janitor(engine: Engine) -> None:
    for end in ("complete", "bury"):
        parent = await engine.submit()
        child, sibling = await engine.submit(depends_on=[parent]), await engine.submit(depends_on=[parent])
        (before,) = await become_newer(engine, child)
        await engine.finish(await engine.start(parent), end)
        await recheck_blocked(engine.pool, None)
        assert await left_alone(engine, before)
        assert await engine.status(sibling) == ("queued" if end == "complete" else "dead")
        row = await engine.pool.fetchrow(f"SELECT * FROM {named('recheck_blocked')}($1, 1000)", UUID(int=0))
        assert row is not None
        assert row["mended"] == 0
        await engine.sql("UPDATE tasks SET level = 0 WHERE task_id = $1", child)
        await recheck_blocked(engine.pool, None)
        assert await engine.status(child) == await engine.status(sibling), "as a newer one does it"


@on_the_engine
async def test_a_dead_parent_s_revival_leaves_its_newer_child(engine: Engine) -> None:
    parent = await engine.submit()
    child = await engine.submit(depends_on=[parent])
    await engine.cancel(parent)
    (before,) = await become_newer(engine, child)
    assert await engine.revive(parent) == "queued"
    assert await left_alone(engine, before)


@on_the_engine
async def test_it_is_neither_held_nor_released(engine: Engine) -> None:
    waiting, held = await engine.submit_many(2)
    await tasks.hold(engine.pool, [held], Hold.KEY)
    rows = await become_newer(engine, waiting, held)
    assert await tasks.hold(engine.pool, [waiting, held], Hold.WORKFLOW) == set()
    assert await tasks.release(engine.pool, [waiting, held], Hold.KEY) == set()
    assert await left_alone(engine, *rows)


@on_the_engine
async def test_a_process_for_those_that_run_alone_does_not_ask_for_it_again_and_again(engine: Engine) -> None:
    await serve(engine)
    task_id = await engine.submit()
    await engine.sql("UPDATE tasks SET suspicion = 2")
    found = await tasks.next_alone(engine.pool, ["probe.probe"])
    assert found is not None
    await become_newer(engine, task_id)
    assert await tasks.next_alone(engine.pool, ["probe.probe"]) is None

"""A person who is asked: a blocked task, decided once, and asked about again in another life."""

import asyncio
from typing import Any
from uuid import UUID

from tests.support.engine.graphs import complete
from tests.support.engine.store import Engine, on_the_engine
from tests.support.engine.workflows import a_workflow, compared
from windlass.shared.filters import Filter
from windlass.shared.store.reading import listing
from windlass.shared.store.workflows import approvals
from windlass.shared.store.workflows.approvals import Decision

ASK: dict[str, Any] = {"approval": {"message": "publish it?", "expires_in_seconds": 60.0}}


async def decide(engine: Engine, task_id: UUID, decision: Decision = Decision.APPROVED) -> str | None:
    row = await approvals.decide(engine.pool, task_id, decision, by="bob", comment="well")
    assert row is not None
    return row.refusal


async def asked(engine: Engine) -> list[UUID]:
    return [row.task_id for row in await approvals.waiting(engine.pool, owner="ann", after=None, limit=10)]


@on_the_engine
async def test_it_is_asked_when_its_dependencies_are_met_and_starts_when_approved(engine: Engine) -> None:
    parent = await engine.submit()
    task = await engine.submit(depends_on=[parent], **ASK)
    assert (await engine.row(task)).unmet == 2
    assert await decide(engine, task) == "not-waiting-for-approval"
    assert await asked(engine) == []
    await complete(engine, parent)
    row = await engine.row(task)
    assert (row.status, row.unmet) == ("blocked", 1)
    assert row.asked_at is not None
    assert row.ask_expires_at is not None
    assert (row.ask_expires_at - row.asked_at).total_seconds() == 60, "it runs from when the last dependency was met"
    assert await asked(engine) == [task]
    (listed, _) = await listing.newest(engine.pool, Filter(), limit=2)
    assert (listed.task_id, listed.asked_at) == (task, row.asked_at), "a list of tasks says since when, too"
    assert await decide(engine, task) is None
    assert await decide(engine, task, Decision.REJECTED) == "already-decided"
    assert await engine.status(task) == "queued"
    assert await engine.story(task) == ["submit", "ask", "approve", "unblock"]
    assert (await engine.start(task)).attempt == 1


@on_the_engine
async def test_who_depends_on_nobody_is_asked_about_at_once_and_rejected_it_is_cancelled(engine: Engine) -> None:
    task = await engine.submit(**ASK)
    child = await engine.submit(depends_on=[task])
    assert await engine.story(task) == ["submit", "ask"]
    assert await decide(engine, task, Decision.REJECTED) is None
    assert await engine.statuses([task, child]) == ["cancelled", "dead"]
    assert await engine.revive(task) == "blocked"
    row = await engine.row(task)
    assert row.approval == ASK["approval"], "it is asked again"
    assert await asked(engine) == [task]
    assert await decide(engine, task) is None
    assert await engine.status(task) == "queued"
    await engine.cancel(task)
    assert await engine.revive(task) == "queued", "it was approved"


@on_the_engine
async def test_of_two_who_decide_at_once_the_second_is_told(engine: Engine) -> None:
    for _ in range(5):
        task = await engine.submit(**ASK)
        said = await asyncio.gather(decide(engine, task), decide(engine, task, Decision.REJECTED))
        assert sorted(map(str, said)) == ["None", "already-decided"]


@on_the_engine
async def test_nobody_s_word_in_time_is_a_no(engine: Engine) -> None:
    task, other = await engine.submit(**ASK), await engine.submit(**ASK)
    assert await approvals.expire(engine.pool) == []
    await engine.sql("UPDATE tasks SET ask_expires_at = clock_timestamp() - interval '1 s' WHERE task_id = $1", task)
    assert await approvals.expire(engine.pool) == [task]
    assert await engine.statuses([task, other]) == ["cancelled", "blocked"]
    assert ((await engine.row(task)).approval or {})["decision"] == "expired"
    assert await asked(engine) == [other]


@on_the_engine
async def test_a_workflow_counts_what_a_person_says(engine: Engine) -> None:
    async with compared(engine):
        for decision, status in ((Decision.APPROVED, "running"), (Decision.REJECTED, "failed")):
            flow = await a_workflow(
                engine,
                {"draft": [], "publish": ["draft"], "tell": ["publish"]},
                fields={"publish": {"approval": ASK["approval"]}},
            )
            await flow.finish("draft")
            assert await decide(engine, flow.ids["publish"], decision) is None
            assert await flow.status() == status

"""The task of an item is submitted as any other task is."""

import asyncio
import json
from typing import Any
from uuid import UUID

import asyncpg

from tests.support.engine.projects import Project
from tests.support.engine.store import Engine, on_the_engine
from windlass.shared.concerns import Concern
from windlass.shared.store.workflows import approvals
from windlass.shared.store.workflows.approvals import Decision

GIVEN: dict[str, Any] = {
    "actor": "probe",
    "provider": "probe",
    "payload": {"content": "word " * 4000, "deep": {"of": [1, None, "two"]}},
    "timeout_seconds": 12.5,
    "task_type": "chapter",
    "priority": 1,
    "max_retries": 7,
    "max_age_seconds": 3600.0,
    "delay_seconds": 60.0,
    "tags": ["draft", "book", "draft"],
    "workflow_run_id": "run-1",
    "interaction_id": "talk-1",
    "retry_delays": {"curves": {"*": [1.0, 2.0]}},
    "concerns": Concern.MEMORY.value | Concern.KEY.value,
    "concurrency_key": "book",
    "request_id": "request-1",
}
"""What an item can have, each field other than its default."""

OF_ONE_TASK = ("task_id", "created_at", "updated_at", "available_at", "expires_at", "project_id", "concerns")

STORED = """
SELECT (to_jsonb(t) || jsonb_build_object(
    'waits', t.available_at - t.created_at, 'lives', t.expires_at - t.created_at,
    'events', (
        SELECT jsonb_agg(to_jsonb(e) - '{task_id,at,xid}'::text[]) FROM task_events e WHERE e.task_id = t.task_id),
    'found_by', (SELECT jsonb_agg(g.tag ORDER BY g.tag) FROM task_tags g WHERE g.task_id = t.task_id)))::text
FROM tasks t WHERE t.task_id = $1
"""
TALLIES = "SELECT user_id, provider, actor, status, tasks FROM task_tallies ORDER BY tally_id"


async def stored(engine: Engine, task_id: UUID) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(await engine.pool.fetchval(STORED, task_id))
    return row


def what_all_have(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in OF_ONE_TASK}


@on_the_engine
async def test_it_is_what_a_submit_of_the_same_would_be(engine: Engine) -> None:
    plain = await stored(engine, await engine.submit(**GIVEN))
    project = await Project.made(engine, "zero")
    await project.add("one", **GIVEN)
    await project.start("loop")
    await project.finish()
    run = await stored(engine, await project.task())
    assert what_all_have(run) == what_all_have(plain)
    assert run["found_by"] == ["book", "draft"]
    assert run["project_id"] == str(project.project_id)
    assert run["concerns"] == plain["concerns"] | Concern.RUN.value
    tallies = [tuple(row) for row in await engine.pool.fetch(TALLIES)]
    assert tallies.count(("ann", "probe", "probe", "submitted", 1)) == 3


@on_the_engine
async def test_a_time_to_come_is_waited_for_and_one_that_has_passed_means_now(engine: Engine) -> None:
    project = await Project.made(engine, "zero")
    await project.add("passed", run_at="2020-01-01T00:00:00Z")
    await project.add("to come", run_at="2999-01-01T00:00:00Z")
    await project.start("loop")
    await project.finish()
    passed = await engine.row(await project.task())
    assert passed.available_at == passed.created_at
    await project.finish()
    to_come = await engine.row(await project.task())
    assert to_come.available_at.year == 2999


@on_the_engine
async def test_a_person_is_asked_about_an_item_when_its_turn_comes(engine: Engine) -> None:
    project = await Project.made(engine, "draft")
    await project.add("publish", approval={"message": "publish it?"})
    await project.add("after")
    await project.start("loop")
    await project.finish()
    task = await project.task()
    assert await engine.status(task) == "blocked"
    assert [row.task_id for row in await approvals.waiting(engine.pool, owner="ann", after=None, limit=10)] == [task]
    decided = await approvals.decide(engine.pool, task, Decision.APPROVED, by="bob", comment="well")
    assert decided is not None
    assert decided.refusal is None
    assert await project.finish() == task
    assert await project.running() == "after"


@on_the_engine
async def test_who_listens_for_new_tasks_hears_of_it(engine: Engine) -> None:
    """The streams of its id, and the dispatcher of its provider: whoever ended the last run may not be the one that can
    take it."""
    await engine.provide("other", limit=None)
    project = await Project.made(engine, "one")
    await project.add("two", provider="other")
    await project.start("loop")
    attempt = await project.claimed()
    heard: list[tuple[str, str]] = []
    listening = await asyncpg.connect(engine.database_url)
    try:
        for channel in ("windlass_events", "windlass_dispatch"):
            await listening.add_listener(channel, lambda _, __, channel, payload: heard.append((channel, str(payload))))
        await engine.finish(attempt)
        expected = {("windlass_events", str(await project.task())), ("windlass_dispatch", "other")}
        async with asyncio.timeout(30):
            while not expected <= set(heard):
                await listening.execute("SELECT 1")
    finally:
        await listening.close()

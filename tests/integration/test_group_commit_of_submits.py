"""Submits that come together are stored together, and answered each for itself."""

import asyncio

import pytest

from tests.support.engine.store import Engine, a_submission, on_the_engine
from windlass.services.api.tasks.group_commit import GroupCommit
from windlass.shared.db import UNSTORABLE

COMMITS = "SELECT count(DISTINCT xid) FROM task_events"


@on_the_engine
async def test_what_comes_together_is_committed_together_and_answered_one_by_one(engine: Engine) -> None:
    commits = GroupCommit(engine.pool)
    submissions = [a_submission(priority=number % 10) for number in range(250)]
    rows = await asyncio.gather(*map(commits.submit, submissions))
    assert [row["task_id"] for row in rows] == [each.task_id for each in submissions]
    assert [row["priority"] for row in rows] == [each.priority for each in submissions]
    assert await engine.count("status = 'queued'") == 250
    assert await engine.pool.fetchval(COMMITS) == 3


@on_the_engine
async def test_one_alone_does_not_wait_for_company(engine: Engine) -> None:
    commits = GroupCommit(engine.pool)
    for _ in range(3):
        await commits.submit(a_submission())
    assert await engine.pool.fetchval(COMMITS) == 3


@on_the_engine
async def test_a_value_that_cannot_be_stored_fails_alone(engine: Engine) -> None:
    commits = GroupCommit(engine.pool)
    submissions = [a_submission(payload={"result": "nul\0" if number == 2 else "fine"}) for number in range(5)]
    answers = await asyncio.gather(*map(commits.submit, submissions), return_exceptions=True)
    assert [isinstance(answer, UNSTORABLE) for answer in answers] == [False, False, True, False, False]
    assert await engine.count("true") == 4
    await commits.submit(a_submission())


@on_the_engine
async def test_who_leaves_takes_nothing_along(engine: Engine) -> None:
    commits = GroupCommit(engine.pool)
    async with engine.holding("LOCK TABLE tasks IN EXCLUSIVE MODE"):
        leaving = asyncio.create_task(commits.submit(a_submission()))
        staying = asyncio.create_task(commits.submit(a_submission()))
        await engine.until_waiting(1)
        leaving.cancel()
    assert (await staying)["status"] == "queued"
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert await engine.count("true") == 2, "what was sent is stored, whoever still listens"


@on_the_engine
async def test_an_outage_is_told_to_everybody_and_over_with_the_next_call(engine: Engine) -> None:
    commits = GroupCommit(engine.pool)
    await engine.sql("ALTER TABLE tasks RENAME TO tasks_elsewhere")
    try:
        answers = await asyncio.gather(*(commits.submit(a_submission()) for _ in range(3)), return_exceptions=True)
    finally:
        await engine.sql("ALTER TABLE tasks_elsewhere RENAME TO tasks")
    assert all(isinstance(answer, Exception) for answer in answers)
    assert (await commits.submit(a_submission()))["status"] == "queued"

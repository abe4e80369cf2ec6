"""Daily figures: by who and for whom, added up as one likes, and the same however often a day is counted."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from tests.support.engine.store import Engine, on_the_engine
from tests.support.waiting import wait_until
from windlass.shared.store.operating import statistics
from windlass.shared.store.operating.statistics import percentile_of


def today() -> date:
    return datetime.now(UTC).date()


@pytest.fixture(autouse=True)
def by_day() -> None:
    """What has taken a minute has begun today, and today does not end before the test does."""
    wait_until("it is not midnight", lambda: time(0, 2) < datetime.now(UTC).time() < time(23, 59), seconds=200)


async def ended(engine: Engine, *, wait: float, run: float, status: str = "complete", **fields: Any) -> UUID:
    """A task that waited and ran for so many seconds."""
    usage = fields.pop("usage", None)
    attempt = await engine.running(**fields)
    await engine.finish(attempt, status, usage=usage)
    await engine.sql(
        """
        UPDATE tasks SET created_at = completed_at - make_interval(secs => $2::float + $3::float),
                         started_at = completed_at - make_interval(secs => $3) WHERE task_id = $1
        """,
        attempt.task_id,
        wait,
        run,
    )
    return attempt.task_id


async def figures(engine: Engine, *group_by: str, owner: str | None = None) -> list[dict[str, Any]]:
    rows = await statistics.between(engine.pool, today(), today(), group_by=group_by, owner=owner)
    return [statistics.document_of(row, group_by) for row in rows]


@on_the_engine
async def test_figures_are_split_by_what_is_asked_for_and_add_up(engine: Engine) -> None:
    await engine.provide("studio", limit=1)
    cost = {"cost_usd": 0.1, "prompt_tokens": 10, "completion_tokens": 5}
    for _ in range(9):
        await ended(engine, wait=1, run=2, usage=cost)
    await ended(engine, wait=10, run=40, project_id="coast", usage=cost)
    await ended(engine, wait=1, run=1, status="bury", provider="studio", user_id="ben", usage={"cost_usd": 0.2})
    await engine.submit(actor="agent", payload={"subagent_type": "analyst"}, user_id="ben")
    await statistics.keep_figures(engine.pool, today())

    (whole,) = await figures(engine)
    assert (whole["created"], whole["completed"], whole["failed"]) == (12, 10, 1)
    assert (whole["prompt_tokens"], whole["completion_tokens"]) == (100, 50)
    assert whole["cost_usd"] == pytest.approx(1.2)
    assert whole["failed_cost_usd"] == pytest.approx(0.2)
    assert whole["error_rate"] == pytest.approx(1 / 11)
    assert whole["average_latency_seconds"] == pytest.approx((9 * 3 + 50) / 10)
    assert whole["wait_p50_seconds"] == pytest.approx(1, rel=0.07)
    assert whole["wait_p90_seconds"] == pytest.approx(1, rel=0.07)
    assert whole["run_p50_seconds"] == pytest.approx(2, rel=0.07)

    by_user = {each["user_id"]: each for each in await figures(engine, "user_id")}
    assert (by_user["ann"]["completed"], by_user["ben"]["failed"]) == (10, 1)
    assert by_user["ben"]["wait_p90_seconds"] == pytest.approx(1, rel=0.07)
    assert by_user["ann"]["run_p90_seconds"] == pytest.approx(2, rel=0.07)
    assert {each["project_id"]: each["created"] for each in await figures(engine, "project_id")} == {
        None: 11,
        "coast": 1,
    }
    assert {(each["actor"], each["subagent_type"]) for each in await figures(engine, "actor", "subagent_type")} == {
        ("probe", None),
        ("agent", "analyst"),
    }
    assert [each["created"] for each in await figures(engine, "provider", owner="ben")] == [1, 1]


@on_the_engine
async def test_what_failed_attempts_have_cost_is_told_of_whatever_became_of_their_tasks(engine: Engine) -> None:
    async def failed_twice(second: str, **usage: float) -> None:
        first = await engine.running()
        await engine.finish(first, "retry", usage={"cost_usd": 1})
        await engine.become_due(first.task_id)
        await engine.finish(await engine.start(first.task_id), second, usage=usage or None)

    await failed_twice("complete", cost_usd=10)
    await failed_twice("retry", cost_usd=100)
    await failed_twice("bury", cost_usd=1000)
    await failed_twice("complete")
    await ended(engine, wait=1, run=1, usage={"cost_usd": 5})
    await statistics.keep_figures(engine.pool, today())
    (whole,) = await figures(engine)
    assert whole["cost_usd"] == pytest.approx(11 + 101 + 1001 + 1 + 5)
    assert whole["failed_cost_usd"] == pytest.approx(1 + 101 + 1001 + 1)


@on_the_engine
async def test_a_day_that_is_counted_anew_equals_the_one_that_was_kept(engine: Engine) -> None:
    for number in range(30):
        await ended(engine, wait=0.01 * number, run=0.1 * number, user_id=f"user-{number % 3}", usage={"cost_usd": 0.1})
    for _ in range(2):
        await statistics.keep_figures(engine.pool, today())
    kept = await engine.pool.fetch("SELECT * FROM task_queue_metrics ORDER BY user_id")
    await statistics.keep_figures(engine.pool, today())
    assert await engine.pool.fetch("SELECT * FROM task_queue_metrics ORDER BY user_id") == kept, "not even written"
    await engine.sql("DELETE FROM task_queue_metrics")
    await statistics.keep_figures(engine.pool, today())
    anew = await engine.pool.fetch("SELECT * FROM task_queue_metrics ORDER BY user_id")
    assert [{**row, "updated_at": None} for row in anew] == [{**row, "updated_at": None} for row in kept]


@on_the_engine
async def test_what_still_runs_changes_its_day_and_no_other(engine: Engine) -> None:
    yesterday = UUID(int=(uuid7().int - (86_400_000 << 80)))
    await engine.submit(task_id=yesterday)
    attempt = await engine.running()
    for day in (today(), today() - timedelta(days=1)):
        await statistics.keep_figures(engine.pool, day)
    (counted,) = await figures(engine)
    assert (counted["created"], counted["completed"], counted["cost_usd"]) == (1, 0, None)
    assert counted["heartbeat_delay_seconds"] < 60
    await engine.finish(attempt)
    await statistics.keep_figures(engine.pool, today())
    (counted,) = await figures(engine)
    assert (counted["created"], counted["completed"], counted["heartbeat_delay_seconds"]) == (1, 1, None)


def test_percentiles_come_from_steps() -> None:
    assert percentile_of({}, 0.5) is None
    assert percentile_of({"0": 3}, 0.9) == pytest.approx(0.001, rel=0.07)
    assert percentile_of({"60": 50, "80": 49, "100": 1}, 0.5) == pytest.approx(1, rel=0.07)
    assert percentile_of({"60": 50, "80": 49, "100": 1}, 0.9) == pytest.approx(10, rel=0.07)

"""Lists of tasks: newest first, stable while rows arrive, by any combination of filters."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from shared.store import listing
from shared.store.listing import Filter
from tests.integration.engine import Engine, on_the_engine


async def listed(engine: Engine, limit: int = 100, before: UUID | None = None, **wanted: Any) -> list[UUID]:
    rows = await listing.newest(engine.pool, Filter(**wanted), before=before, limit=limit)
    return [row["task_id"] for row in rows]


@on_the_engine
async def test_the_newest_come_first(engine: Engine) -> None:
    oldest_first = [await engine.submit() for _ in range(5)]
    assert await listed(engine) == oldest_first[::-1]


@on_the_engine
async def test_pages_follow_each_other_without_gap_or_repeat_while_rows_arrive(engine: Engine) -> None:
    first = await engine.submit_many(25)
    seen: list[UUID] = []
    while page := await listed(engine, limit=4, before=seen[-1] if seen else None):
        seen += page
        await engine.submit_many(3)
    assert seen == first[::-1]


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"user_id": "bob"}, {"user_id": "bob"}),
        ({"provider": "slow"}, {"provider": "slow"}),
        ({"project_id": "p"}, {"project_id": "p"}),
        ({"workflow_id": "w"}, {"workflow_id": "w"}),
        ({"workflow_run_id": "r"}, {"workflow_run_id": "r"}),
        ({"interaction_id": "i"}, {"interaction_id": "i"}),
        ({"parent_task_id": UUID(int=7)}, {"parent_task_id": UUID(int=7)}),
        ({"tags": ["a", "b"]}, {"tag": ["a"]}),
        ({"tags": ["a", "b"]}, {"tag": ["b", "a"]}),
        ({"user_id": "bob", "project_id": "p"}, {"user_id": "bob", "project_id": "p", "status": ["queued"]}),
    ],
)
@on_the_engine
async def test_a_filter_finds_what_it_names_and_nothing_else(
    engine: Engine, fields: dict[str, Any], wanted: dict[str, Any]
) -> None:
    await engine.submit(tags=["b"], project_id="other")
    meant = await engine.submit(**fields)
    await engine.submit(tags=["c"], user_id="carol")
    assert await listed(engine, **wanted) == [meant]


@on_the_engine
async def test_several_states_are_or_several_tags_are_and(engine: Engine) -> None:
    waiting = await engine.submit(tags=["a"])
    dead = await engine.dead(tags=["a", "b"])
    await engine.completed(tags=["a", "b", "c"])
    assert await listed(engine, status=["queued", "dead"]) == [dead, waiting]
    assert await listed(engine, status=["queued", "dead"], tag=["a", "b"]) == [dead]
    assert await listed(engine, status=["cancelled"]) == []


@on_the_engine
async def test_lanes_and_kinds_of_errors_are_found(engine: Engine) -> None:
    await engine.submit()
    failed = await engine.running()
    await engine.finish(failed, "retry")
    dead = await engine.dead()
    assert await listed(engine, lane="retry") == [failed.task_id]
    assert await listed(engine, error_type="ServiceUnavailable") == [dead, failed.task_id]
    assert await listed(engine, error_type="NotFound") == []


@on_the_engine
async def test_times_are_bounds_that_are_not_included(engine: Engine) -> None:
    first, second, third = [await engine.submit() for _ in range(3)]
    created = (await engine.row(second))["created_at"]
    assert await listed(engine, created_after=created) == [third]
    assert await listed(engine, created_before=created) == [first]
    await engine.start(first)
    updated = (await engine.row(first))["updated_at"]
    assert await listed(engine, updated_after=updated - timedelta(microseconds=1)) == [first]


@on_the_engine
async def test_what_looks_like_sql_is_only_a_value(engine: Engine) -> None:
    await engine.submit()
    assert await listed(engine, user_id="' OR true --") == []
    assert await listed(engine, tag=["{a,b}", "') OR true --"]) == []

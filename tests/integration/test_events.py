"""A task's history in pages: bounded in rows and in bytes, each event with its task's state of the same moment."""

import secrets
from uuid import UUID

from shared.store import events
from tests.integration.engine import Engine, on_the_engine

KILOBYTE = 1024


async def outputs(engine: Engine, *sizes: int) -> UUID:
    """A running task that has said so much, so much, …"""
    attempt = await engine.running()
    for size in sizes:
        assert await engine.say(attempt, events=[{"type": "output", "data": {"text": secrets.token_hex(size // 2)}}])
    return attempt.task_id


@on_the_engine
async def test_a_page_ends_once_it_holds_enough_bytes_and_never_before_its_first_event(engine: Engine) -> None:
    task_id = await outputs(engine, *[40 * KILOBYTE] * 6)

    async def seqs(after: int, most_bytes: int, most_rows: int = 100) -> list[int]:
        page = await events.page(engine.pool, task_id, after=after, most_rows=most_rows, most_bytes=most_bytes)
        follow = await events.follow(engine.pool, task_id, after=after, most_rows=most_rows, most_bytes=most_bytes)
        assert [row["seq"] for row in follow] == [row["seq"] for row in page]
        return [row["seq"] for row in page]

    assert await seqs(0, most_bytes=10**9) == list(range(1, 9))
    assert await seqs(0, most_bytes=10**9, most_rows=3) == [1, 2, 3]
    assert await seqs(2, most_bytes=100 * KILOBYTE) == [3, 4, 5]
    assert await seqs(2, most_bytes=1) == [3]


@on_the_engine
async def test_a_page_by_type_looks_as_far_as_it_takes(engine: Engine) -> None:
    task_id = await outputs(engine, *[10] * 30)
    row = await engine.row(task_id)
    assert row["last_seq"] == 32
    page = await events.page(engine.pool, task_id, after=0, most_rows=2, most_bytes=10**6, types=["claim", "output"])
    assert [row["seq"] for row in page] == [2, 3]
    await engine.cancel(task_id)
    page = await events.page(
        engine.pool, task_id, after=3, most_rows=2, most_bytes=10**6, types=["cancel-requested", "bury"]
    )
    assert [row["seq"] for row in page] == [33]


@on_the_engine
async def test_the_last_event_of_an_ended_task_and_no_other_has_what_it_ended_in(engine: Engine) -> None:
    attempt = await engine.running()
    await engine.finish(attempt, "bury")
    await engine.revive(attempt.task_id)
    await engine.finish(await engine.start(attempt.task_id), result={"answer": 42})
    rows = await events.follow(engine.pool, attempt.task_id, after=0, most_rows=100, most_bytes=10**6)
    assert {(row["status"], row["last_seq"]) for row in rows} == {("completed", len(rows))}
    assert [row["result"] for row in rows] == [None] * (len(rows) - 1) + [{"answer": 42}]


@on_the_engine
async def test_without_news_the_state_comes_alone(engine: Engine) -> None:
    attempt = await engine.running()
    (row,) = await events.follow(engine.pool, attempt.task_id, after=2, most_rows=100, most_bytes=10**6)
    assert (row["seq"], row["status"], row["last_seq"]) == (None, "running", 2)

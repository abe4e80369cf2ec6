"""A task's history in pages: bounded in rows and in bytes, each event with its task's state of the same moment."""

import secrets
from uuid import UUID

from tests.support.engine.store import Engine, on_the_engine
from windlass.shared.store.reading import events

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


async def failed_attempt(engine: Engine, task_id: UUID, *words: str, stream: dict[str, str] | None = None) -> None:
    attempt = await engine.start(task_id)
    for text in words:
        assert await engine.say(attempt, events=[{"type": "output", "data": {"text": text, **(stream or {})}}])
    assert await engine.finish(attempt, "retry") == "retrying"


@on_the_engine
async def test_earlier_output_is_that_of_the_attempts_before_in_their_order(engine: Engine) -> None:
    task_id = await engine.submit()
    await failed_attempt(engine, task_id, "one\n", "two\n")
    await failed_attempt(engine, task_id, "three\n")
    await failed_attempt(engine, task_id, "oops\n", stream={"stream": "stderr"})
    attempt = await engine.start(task_id)
    await engine.say(attempt, events=[{"type": "output", "data": {"text": "its own\n"}}])
    await engine.say(attempt, events=[{"type": "output", "data": {"data": {"output_cut_off": True}}}])

    async def earlier(most_bytes: int, before_attempt: int = 4) -> str:
        return await events.earlier_output(engine.pool, task_id, before_attempt=before_attempt, most_bytes=most_bytes)

    assert await earlier(1000) == "one\ntwo\nthree\n"
    assert await earlier(1000, before_attempt=2) == "one\ntwo\n"
    assert await earlier(1000, before_attempt=1) == ""
    assert await earlier(8) == "o\nthree\n", "of too much, the end"


@on_the_engine
async def test_earlier_output_never_cuts_a_character_in_two(engine: Engine) -> None:
    task_id = await engine.submit()
    await failed_attempt(engine, task_id, "äöü")
    assert await events.earlier_output(engine.pool, task_id, before_attempt=2, most_bytes=3) == "ü"


@on_the_engine
async def test_a_new_life_begins_without_the_output_of_the_old_one(engine: Engine) -> None:
    task_id = await engine.submit()
    await failed_attempt(engine, task_id, "an old life\n")
    assert await engine.finish(await engine.start(task_id), "bury") == "dead"
    assert await engine.revive(task_id) == "queued"
    await failed_attempt(engine, task_id, "a new one\n")
    assert await events.earlier_output(engine.pool, task_id, before_attempt=9, most_bytes=1000) == "a new one\n"

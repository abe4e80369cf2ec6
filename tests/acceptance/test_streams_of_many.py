"""Many tasks on one connection: every event once, each task's in order, whatever commits when."""

import asyncio
import random
import secrets
from uuid import UUID

import pytest

from tests.support.engine.store import Engine, until
from tests.support.event_reader import Event, EventReader
from tests.support.installation import KEY, NOBODY, Windlass
from tests.support.stream_api import ANN, api, names, output, progress, stories, two_lives, with_workers
from windlass.shared.store.tasks import Claimed

__all__ = ["api"]


def seqs(events: list[Event], task_id: UUID) -> list[int]:
    return [event.data["seq"] for event in events if event.data["task_id"] == str(task_id)]


async def told_until(stream: EventReader, end: UUID) -> list[Event]:
    """Everything up to the completion of a task."""
    events = []
    while True:
        events += await stream.some(1)
        if events[-1].name == "complete" and events[-1].data["task_id"] == str(end):
            return events


@with_workers
async def test_it_starts_now_and_goes_on_over_the_ends_of_tasks(api: Windlass, engine: Engine) -> None:
    await two_lives(engine)
    async with stories(api.port) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        task_id = await two_lives(engine)
        after = await engine.completed()
        told = await told_until(stream, after)
    assert seqs(told, task_id) == [row["seq"] for row in await engine.history(task_id)]
    assert {event.data["task_id"] for event in told} == {str(task_id), str(after)}
    assert names(told)[-1] == "complete"
    assert told[-1].data == {"task_id": str(after), "seq": 3, "attempt": 1, "result": None}


@with_workers
async def test_it_resumes_from_every_id(api: Windlass, engine: Engine) -> None:
    async with stories(api.port) as stream:
        other = await engine.running()
        await two_lives(engine)
        await progress(engine, other, "on the way")
        last = await engine.completed()
        whole = await told_until(stream, last)
    for position, event in enumerate(whole[:-1], start=1):
        async with stories(api.port, last_event_id=event.id) as stream:
            again = await told_until(stream, last)
            assert [event.id for event in again] == [event.id for event in whole[position:]]
            assert "error" not in names(again), "by now, that death is one of an earlier life"


@with_workers
async def test_who_leaves_before_anything_has_happened_misses_nothing(api: Windlass, engine: Engine) -> None:
    position = await place_of_now(api.port)
    task_id = await engine.completed()
    async with stories(api.port, last_event_id=position) as stream:
        assert seqs(await told_until(stream, task_id), task_id) == [1, 2, 3]


@with_workers
async def test_after_a_long_absence_everything_comes_page_by_page(api: Windlass, engine: Engine) -> None:
    position = await place_of_now(api.port)
    wordy, other = await engine.running(), await engine.running()
    for number in range(30):
        lines = [{"type": "output", "data": {"text": f"{number}: {line}"}} for line in range(10)]
        assert await engine.say(wordy, events=lines)
        await output(engine, other, secrets.token_hex(20_000))
    await engine.finish(other)
    await engine.finish(wordy)
    async with stories(api.port, after=position) as stream:
        told = await told_until(stream, wordy.task_id)
    for attempt in (wordy, other):
        assert seqs(told, attempt.task_id) == [row["seq"] for row in await engine.history(attempt.task_id)]


@with_workers
async def test_filters_combine_and_what_is_foreign_does_not_exist(api: Windlass, engine: Engine) -> None:
    async def told(key: str, start: str, **filters: object) -> set[UUID]:
        """Whose events come; the last one is a task of each user's own, to know that all has come."""
        async with stories(api.port, key=key, last_event_id=start, **filters) as stream:
            ends = {each for each in (mine, hers) if key != ANN or each == mine}
            found: set[UUID] = set()
            while not ends <= found and ends:
                (event,) = await stream.some(1)
                found.add(UUID(event.data["task_id"]))
            return found

    start = await place_of_now(api.port)
    red = await engine.completed(project_id="red", workflow_id="w1")
    blue = await engine.completed(project_id="blue", workflow_id="w1")
    bens = await engine.completed(project_id="red", user_id="ben")
    mine = await engine.completed(project_id="red", workflow_id="w1")
    hers = await engine.completed(project_id="red", workflow_id="w1", user_id="ben")

    assert await told(KEY, start) == {red, blue, bens, mine, hers}
    assert await told(KEY, start, project_id="red") == {red, bens, mine, hers}
    assert await told(KEY, start, project_id="red", workflow_id="w1") == {red, mine, hers}
    assert await told(KEY, start, task_id=[blue, mine, hers, NOBODY]) == {blue, mine, hers}
    assert await told(ANN, start) == {red, blue, mine}
    assert await told(ANN, start, project_id="red") == {red, mine}
    assert await told(ANN, start, task_id=[bens, blue, mine]) == {blue, mine}
    assert await told(ANN, start, user_id="ann", workflow_id="w1") == {red, blue, mine}


@with_workers
async def test_nothing_comes_to_who_asks_for_what_is_not_his(api: Windlass, engine: Engine) -> None:
    task_id = await engine.submit(user_id="ben")
    async with stories(api.port, key=ANN, user_id="ben") as foreign, stories(api.port, key=ANN, task_id=task_id) as one:
        reading = [asyncio.create_task(each.event()) for each in (foreign, one)]
        await engine.finish(await engine.start(task_id))
        pings = foreign.pings, one.pings
        await until(lambda: _has(foreign.pings > pings[0] + 1 and one.pings > pings[1] + 1))
        assert not any(each.done() for each in reading)


@with_workers
@pytest.mark.parametrize("cursor", ["1", "!", "AAAA", "é", "A" * 39, "_" * 38, "A" * 5000])
async def test_a_cursor_that_was_never_given_out_is_refused(api: Windlass, engine: Engine, cursor: str) -> None:
    async with stories(api.port, last_event_id=cursor) as answer:
        assert answer.status == 400
        assert b"invalid-event-id" in await answer.body()


@with_workers
async def test_a_late_commit_is_not_skipped(api: Windlass, engine: Engine) -> None:
    """Two transactions commit in reverse order: what the younger wrote waits for the older."""
    slow, quick = await engine.running(), await engine.running()
    async with stories(api.port, task_id=[slow.task_id, quick.task_id]) as stream:
        async with engine.holding("SELECT pg_current_xact_id()") as connection:
            await progress(engine, quick, "younger, and first to commit")
            late = Engine(engine.database_url, connection)  # type: ignore[arg-type]
            listening = asyncio.create_task(stream.event())
            await engine.finish(quick)
            await progress(late, slow, "older, and last to commit")
            pings = stream.pings
            await until(lambda: _has(stream.pings >= pings + 2))
            assert not listening.done(), "what could still be overtaken is not told"
        first = await listening
        assert first
        rest = await stream.some(2)
    assert [event.data["task_id"] for event in (first, *rest)] == [
        str(slow.task_id), str(quick.task_id), str(quick.task_id),
    ]  # fmt: skip


@with_workers
async def test_an_older_transaction_that_was_slower_on_the_same_task_is_told_second(
    api: Windlass, engine: Engine
) -> None:
    """The order of transactions is the wrong way round for this task; its own order is kept, from every id."""
    attempt, other = await engine.running(), await engine.running()
    async with stories(api.port) as stream:
        async with engine.holding("SELECT pg_current_xact_id()") as oldest:
            older = Engine(engine.database_url, oldest)  # type: ignore[arg-type]
            await progress(engine, attempt, "3: younger")
            await progress(engine, other, "in between")
            await progress(engine, attempt, "4: younger still")
            await older.finish(attempt)
            await engine.sql("SELECT 1")
        last = await engine.completed()
        whole = await told_until(stream, last)
    assert seqs(whole, attempt.task_id) == [3, 4, 5]
    xids = [row["xid"] for row in await engine.history(attempt.task_id)]
    assert xids[4] < xids[2] < xids[3], "the case that this test is about"
    assert len(whole) == 3 + 1 + 3
    for position, event in enumerate(whole[:-1], start=1):
        async with stories(api.port, last_event_id=event.id) as stream:
            assert await told_until(stream, last) == whole[position:]


@with_workers
async def test_under_load_every_event_comes_once_and_in_each_task_s_order(api: Windlass, engine: Engine) -> None:
    """Workers, cancellations and batches at the same time; a client that leaves and comes back all the while."""
    attempts = [await engine.running() for _ in range(8)]

    async def work(attempt: Claimed, number: int) -> None:
        for step in range(12):
            await output(engine, attempt, f"{number}: {step}")
        await engine.finish(attempt)

    async def cancel_some() -> None:
        for attempt in attempts[::2]:
            await engine.cancel(attempt.task_id)

    async with asyncio.TaskGroup() as group:
        listening = group.create_task(listen_in_pieces(api.port, await place_of_now(api.port), ends=len(attempts)))
        group.create_task(cancel_some())
        for number, attempt in enumerate(attempts):
            group.create_task(work(attempt, number))
    for attempt in attempts:
        history = [row["seq"] for row in await engine.history(attempt.task_id) if row["type"] != "cancel-requested"]
        assert seqs(listening.result(), attempt.task_id) == history[2:]


async def listen_in_pieces(port: int, position: str, *, ends: int) -> list[Event]:
    """Leaves after a few events and comes back, until so many tasks have ended."""
    dice = random.Random(7)
    told: list[Event] = []
    while ends:
        async with stories(port, last_event_id=position) as stream:
            for _ in range(dice.randint(1, 12)):
                told += await stream.some(1)
                ends -= told[-1].name in {"complete", "cancelled"}
                if not ends:
                    break
        position = told[-1].id
    return told


async def place_of_now(port: int) -> str:
    """The id that a stream begins with."""
    async with stories(port) as stream:
        reading = asyncio.create_task(stream.event())
        await until(lambda: _has(stream.last_id))
        reading.cancel()
        assert b"\nid: " in stream.first_chunk, "with the first ping would be too late"
        return stream.last_id


async def _has(value: object) -> bool:
    return bool(value)

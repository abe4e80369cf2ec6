"""`/stream?only=state`: a list that is kept true, by no more than a page can follow."""

import asyncio
from uuid import UUID

from tests.support.engine.store import Engine
from tests.support.event_reader import Event, EventReader
from tests.support.installation import KEY, Windlass
from tests.support.stream_api import ANN, api, names, output, progress, stories, two_lives, with_workers

__all__ = ["api"]


def seqs(events: list[Event], task_id: UUID) -> list[int]:
    return [event.data["seq"] for event in events if event.data["task_id"] == str(task_id)]


async def told_until(stream: EventReader, end: UUID) -> list[Event]:
    """Everything up to the completion of a task."""
    events = await stream.some(1)
    while not (events[-1].name == "complete" and events[-1].data["task_id"] == str(end)):
        events += await stream.some(1)
    return events


@with_workers
async def test_it_tells_every_change_of_state_and_no_output(api: Windlass, engine: Engine) -> None:
    async with stories(api.port, only="state") as stream:
        task_id = await two_lives(engine)
        told = await told_until(stream, task_id)
    history = await engine.history(task_id)
    assert seqs(told, task_id) == [row["seq"] for row in history if row["type"] != "output"]
    assert told[-1].data["result"] == {"answer": 42}


@with_workers
async def test_of_progress_the_last_of_a_second_comes_also_when_nothing_else_happens(
    api: Windlass, engine: Engine
) -> None:
    attempt = await engine.running()
    async with stories(api.port, only="state", task_id=attempt.task_id) as stream:
        for number in range(30):
            await progress(engine, attempt, f"{number}")
        told = await stream.some(2)
        while told[-1].data["progress"]["message"] != "29":  # on a machine so slow that a second passed in between
            told += await stream.some(1)
        assert told[0].data["progress"]["message"] == "0"
        assert len(told) < 30
        await engine.finish(attempt)
        assert names(await stream.some(1)) == ["complete"]


@with_workers
async def test_it_resumes_from_every_id_and_loses_nothing(api: Windlass, engine: Engine) -> None:
    """Also what was held back when somebody left; what was told just before may come again."""
    async with stories(api.port, only="state") as stream:
        attempt, other = await engine.running(), await engine.running()
        for number in range(4):
            await progress(engine, attempt, f"{number}")
            await output(engine, other, f"{number}")
        await engine.finish(other)
        last = await engine.completed()
        whole = await told_until(stream, last)
    for position, event in enumerate(whole[:-1], start=1):
        async with stories(api.port, only="state", last_event_id=event.id) as stream:
            again = {each.data["task_id"]: each.data["seq"] for each in await told_until(stream, last)}
            owed = {each.data["task_id"]: each.data["seq"] for each in whole[position:]}
            assert owed.items() <= again.items(), "the newest of each task"
    async with stories(api.port, only="state", last_event_id=whole[-1].id) as stream:
        whole += await told_until(stream, await engine.completed())
    assert seqs(whole, attempt.task_id)[-1] == (await engine.history(attempt.task_id))[-1]["seq"]


@with_workers
async def test_a_storm_is_told_as_a_resync_and_then_it_goes_on(api: Windlass, engine: Engine) -> None:
    async with stories(api.port, only="state") as stream:
        await engine.submit_many(600)
        told = await stream.some(1)
        while told[-1].name != "resync":
            told += await stream.some(1)
        assert len(told) <= 100 + 1
        assert told[-1].data == {}
        async with stories(api.port, only="state", last_event_id=told[-1].id) as again:
            task_id = await engine.completed()
            assert seqs(await told_until(again, task_id), task_id) == [1, 2, 3], "nothing of the storm comes again"
        assert "resync" not in names(await asyncio.wait_for(told_until_quiet(stream, engine), 60))


async def told_until_quiet(stream: EventReader, engine: Engine) -> list[Event]:
    """Once nothing has been missed for a second, single events are told again."""
    while True:
        task_id = await engine.completed()
        (event,) = await stream.some(1)
        if event.name != "resync":
            break
    return [event, *(await told_until(stream, task_id) if event.name != "complete" else [])]


@with_workers
async def test_what_is_foreign_is_not_told(api: Windlass, engine: Engine) -> None:
    async with stories(api.port, only="state", key=ANN) as stream:
        await engine.completed(user_id="ben")
        mine = await engine.completed()
        assert {event.data["task_id"] for event in await told_until(stream, mine)} == {str(mine)}


@with_workers
async def test_there_is_nothing_else_to_ask_for(api: Windlass, engine: Engine) -> None:
    async with stories(api.port, only="everything", key=KEY) as answer:
        assert answer.status == 422

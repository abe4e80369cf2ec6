"""Order, failure and persistence, with units that are made of nothing."""

import asyncio

import pytest

from windlass.services.laptop.supervision.supervisor import Supervisor
from windlass.services.laptop.supervision.unit import StartFailure
from windlass.services.laptop.supervision.waiting import until


class Toy:
    """A unit whose end a test decides; it writes down what happens to it."""

    pid = 1

    def __init__(self, name: str, story: list[str], *, fails: bool = False) -> None:
        self.name = name
        self._story = story
        self._fails = fails
        self._ended = asyncio.Event()

    async def start(self) -> None:
        if self._fails:
            raise StartFailure(f"{self.name} does not start")
        self._ended.clear()
        self._story.append(f"start {self.name}")

    async def wait(self) -> str:
        await self._ended.wait()
        return "exit code 3"

    async def stop(self) -> None:
        self._story.append(f"stop {self.name}")

    def end(self) -> None:
        self._ended.set()


def test_starts_stage_by_stage_and_stops_in_reverse() -> None:
    async def scenario() -> list[str]:
        story: list[str] = []
        supervisor = Supervisor(lambda _text: None)
        await supervisor.start(Toy("database", story), Toy("broker", story))
        await supervisor.start(Toy("api", story))
        await supervisor.stop()
        return story

    assert asyncio.run(scenario()) == [
        "start database",
        "start broker",
        "start api",
        "stop api",
        "stop database",
        "stop broker",
    ]


def test_a_unit_that_does_not_start_makes_the_start_fail() -> None:
    async def scenario() -> None:
        supervisor = Supervisor(lambda _text: None)
        try:
            await supervisor.until_ready(supervisor.start(Toy("broker", [], fails=True)))
        finally:
            await supervisor.stop()

    with pytest.raises(StartFailure, match="broker does not start"):
        asyncio.run(scenario())


def test_a_unit_that_ends_while_others_start_makes_the_start_fail() -> None:
    async def scenario() -> None:
        supervisor = Supervisor(lambda _text: None)
        database = Toy("database", [])

        async def start_everything() -> None:
            await supervisor.start(database)
            database.end()
            await asyncio.Event().wait()

        try:
            await supervisor.until_ready(start_everything())
        finally:
            await supervisor.stop()

    with pytest.raises(StartFailure, match=r"database ended during the start \(exit code 3\)"):
        asyncio.run(scenario())


def test_a_unit_that_ends_later_is_cleared_away_and_started_again() -> None:
    async def scenario() -> tuple[list[str], list[str]]:
        story: list[str] = []
        said: list[str] = []
        renewed: list[str] = []
        supervisor = Supervisor(said.append)
        api = Toy("api", story)
        await supervisor.until_ready(supervisor.start(api))
        keeping = asyncio.create_task(supervisor.keep(on_restart=lambda unit: renewed.append(unit.name)))
        await asyncio.sleep(0)
        api.end()
        assert await until(lambda: renewed == ["api"], 60)
        keeping.cancel()
        await supervisor.stop()
        return story, said

    story, said = asyncio.run(scenario())
    assert story == ["start api", "stop api", "start api", "stop api"]
    assert "api ended (exit code 3): starting it again in 0.2 s" in said


def test_what_is_ended_on_purpose_is_started_again_without_a_complaint() -> None:
    async def scenario() -> tuple[list[str], list[str]]:
        story: list[str] = []
        said: list[str] = []
        supervisor, actors = Supervisor(said.append), Toy("actors", story)

        async def end() -> None:
            story.append("hand back")
            actors.end()

        await supervisor.start(actors)
        keeping = asyncio.create_task(supervisor.keep(on_restart=lambda unit: story.append(f"told of {unit.name}")))
        await asyncio.sleep(0)
        await asyncio.wait_for(supervisor.start_again(actors, end()), 60)
        keeping.cancel()
        return story, said

    story, said = asyncio.run(scenario())
    assert story == ["start actors", "hand back", "stop actors", "start actors", "told of actors"]
    assert said == ["starting actors", "actors runs again (process 1)"]

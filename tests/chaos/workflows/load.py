"""Workflows as a load on a storm: they are submitted over most of its time, people do what they planned, and at the end
everything is brought to its end."""

import asyncio
import random
from dataclasses import dataclass
from functools import partial

from tests.chaos.load.people import PeopleLoad
from tests.chaos.record import Record
from tests.chaos.workflows.deeds import plan
from tests.chaos.workflows.people import People
from tests.chaos.workflows.witness import install_witness


@dataclass(frozen=True)
class Scale:
    workflows: int = 100
    deeds: int = 300


class WorkflowsLoad(PeopleLoad):
    def __init__(
        self, api_url: str, database_url: str, record: Record, dice: random.Random, *, seconds: float, scale: Scale
    ) -> None:
        super().__init__("workflows", record)
        self._api_url, self._database_url, self._dice = api_url, database_url, dice
        self._scale, self._seconds = scale, seconds
        self._people: People | None = None

    def before(self) -> None:
        install_witness(self._database_url)

    async def close(self) -> None:
        if self._people is not None:
            await self._people.close()

    async def work(self) -> None:
        self._people = people = People(self._api_url, self._record, self._dice)
        async with asyncio.TaskGroup() as group:
            for number in range(self._scale.workflows):
                make = partial(self._make, people, number)
                group.create_task(self.at(0.8 * self._seconds * number / self._scale.workflows, make))
            for deed in plan(self._dice, deeds=self._scale.deeds, seconds=self._seconds):
                group.create_task(self.at(deed.at, partial(people.do, deed)))
        await people.bring_to_an_end()

    async def _make(self, people: People, number: int) -> None:
        await people.make(number, random.Random(f"{self._dice.random()} {number}"))

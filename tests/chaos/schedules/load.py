"""Schedules as a load on a storm: they are due all the time, people do what they planned, and at the end all go."""

import asyncio
import random
from dataclasses import dataclass
from functools import partial

from tests.chaos.load.people import PeopleLoad
from tests.chaos.record import Record
from tests.chaos.schedules.deeds import plan
from tests.chaos.schedules.people import People
from tests.chaos.schedules.witness import install_witness


@dataclass(frozen=True)
class Scale:
    schedules: int = 60
    deeds: int = 300


class SchedulesLoad(PeopleLoad):
    def __init__(
        self, api_url: str, database_url: str, record: Record, dice: random.Random, *, seconds: float, scale: Scale
    ) -> None:
        super().__init__("schedules", record)
        self._api_url, self._database_url, self._dice = api_url, database_url, dice
        self._scale, self._seconds = scale, seconds
        self._people: People | None = None

    def before(self) -> None:
        install_witness(self._database_url)

    async def work(self) -> None:
        self._people = people = People(self._api_url, self._database_url, self._record, self._dice)
        began = self._loop.time()
        await people.make_all(self._scale.schedules)
        late = self._loop.time() - began
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(max(0.0, self._seconds - late)))
            for deed in plan(self._dice, deeds=self._scale.deeds, seconds=self._seconds):
                group.create_task(self.at(deed.at - late, partial(people.do, deed)))
        await people.bring_to_an_end()

    async def close(self) -> None:
        if self._people is not None:
            await self._people.close()

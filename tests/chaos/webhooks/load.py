"""Webhooks as a load on a storm: tasks end over most of its time, people do what they planned, and at the end every
endpoint is well."""

import asyncio
import random
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.chaos.load.people import PeopleLoad
from tests.chaos.record import Record
from tests.chaos.webhooks.books import Books
from tests.chaos.webhooks.deeds import plan
from tests.chaos.webhooks.people import People
from tests.chaos.webhooks.witness import install_witness


@dataclass(frozen=True)
class Scale:
    tasks: int = 360
    deeds: int = 300


@dataclass(frozen=True)
class Where:
    """The api, the database, and the receiver with its books."""

    api_url: str
    database_url: str
    receiver_url: str
    directory: Path


class WebhooksLoad(PeopleLoad):
    def __init__(self, where: Where, record: Record, dice: random.Random, *, seconds: float, scale: Scale) -> None:
        super().__init__("webhooks", record)
        self._where, self._dice = where, dice
        self._scale, self._seconds = scale, seconds
        record.webhooks.directory = where.directory
        self._people: People | None = None

    def before(self) -> None:
        install_witness(self._where.database_url)

    async def work(self) -> None:
        where, dice = self._where, self._dice
        self._people = people = People(where.api_url, where.receiver_url, Books(where.directory), self._record, dice)
        began = self._loop.time()
        await people.make_all()
        late = self._loop.time() - began
        async with asyncio.TaskGroup() as group:
            for number in range(self._scale.tasks):
                submit = partial(self._submit, people, number)
                group.create_task(self.at(0.9 * self._seconds * number / self._scale.tasks - late, submit))
            for deed in plan(dice, deeds=self._scale.deeds, seconds=self._seconds):
                group.create_task(self.at(deed.at - late, partial(people.do, deed)))
        await people.bring_to_an_end()

    async def _submit(self, people: People, number: int) -> None:
        await people.submit(number, random.Random(f"{self._dice.random()} {number}"))

    async def close(self) -> None:
        if self._people is not None:
            await self._people.close()

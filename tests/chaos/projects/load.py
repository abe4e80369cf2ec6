"""Projects as a load on a storm: the deeds of a plan at their times, and at the end everybody stops."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from tests.chaos.load.people import PeopleLoad
from tests.chaos.projects.deeds import Deed, a_long_loop, backlog, plan
from tests.chaos.projects.people import People
from tests.chaos.record import Record


@dataclass(frozen=True)
class Scale:
    projects: int = 20
    items: int = 12
    deeds: int = 420
    long_loop: int = 100
    """How many items the loop has that nobody touches; none without one."""


class ProjectsLoad(PeopleLoad):
    def __init__(self, api_url: str, record: Record, dice: random.Random, *, seconds: float, scale: Scale) -> None:
        super().__init__("projects", record)
        self._api_url, self._dice = api_url, dice
        self._scale, self._seconds = scale, seconds
        self._people: People | None = None

    def before(self) -> None:
        pass

    async def close(self) -> None:
        if self._people is not None:
            await self._people.close()

    async def work(self) -> None:
        self._people = people = People(self._api_url, self._record, self._dice)
        scale, began = self._scale, self._loop.time()
        await people.let_agents_work()
        if scale.long_loop:
            each = 0.35 * self._seconds / scale.long_loop
            await people.begin_a_long_loop(list(a_long_loop(scale.long_loop, each)))
        for _ in range(scale.projects):
            await people.make(backlog(self._dice, scale.items))
        left = max(1.0, began + self._seconds - self._loop.time())
        deeds = plan(self._dice, deeds=scale.deeds, seconds=left, projects=scale.projects)
        await self._do_all(people, deeds)
        await self._stop_everything(people)

    async def _do_all(self, people: People, deeds: Sequence[Deed]) -> None:
        async with asyncio.TaskGroup() as group:
            for deed in deeds:
                group.create_task(self.at(deed.at, partial(people.do, deed)))

    async def _stop_everything(self, people: People) -> None:
        """Half of them by force; a loop over long items would take longer than anybody waits."""
        deeds = [
            Deed(0.0, "force-stop" if number % 2 else "stop", number, number) for number in range(len(people.projects))
        ]
        await self._do_all(people, deeds)

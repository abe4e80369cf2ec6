"""Projects under operations chosen by lot, several at a time: what must never be, never is."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from tests.support.engine.projects import Project
from tests.support.engine.store import RULES, Engine, an_ending, on_the_engine
from windlass.shared.features.projects import operations
from windlass.shared.store import tasks
from windlass.shared.store.projects import looking_after
from windlass.shared.store.tasks import Claimed

STEPS = 60
AT_ONCE = 3
ITEMS = ("one", "two", "three", "four", "five")

BROKEN = {
    "two open runs": "SELECT 1 FROM project_runs WHERE ended_at IS NULL GROUP BY project_id HAVING count(*) > 1",
    "an item in two runs": "SELECT 1 FROM project_runs WHERE ended_at IS NULL GROUP BY item_id HAVING count(*) > 1",
    "a live task of a run in an idle project": """
        SELECT t.task_id FROM tasks t JOIN projects p ON p.project_id::text = t.project_id
        WHERE t.concerns & 1 <> 0 AND t.completed_at IS NULL AND p.state = 'idle'
    """,
    "a live task of a run that is not open": """
        SELECT t.task_id FROM tasks t LEFT JOIN project_runs r ON r.task_id = t.task_id AND r.life = t.life
        WHERE t.concerns & 1 <> 0 AND t.completed_at IS NULL AND (r.run_id IS NULL OR r.ended_at IS NOT NULL)
    """,
    "a gap in a history": """
        SELECT p.project_id FROM projects p
        WHERE p.last_seq <> (SELECT count(*) FROM project_events e WHERE e.project_id = p.project_id)
    """,
    "two items in one place": "SELECT 1 FROM project_items GROUP BY project_id, position HAVING count(*) > 1",
}


class Walk:
    def __init__(self, engine: Engine, project: Project, chance: random.Random) -> None:
        self.engine = engine
        self.project = project
        self.chance = chance
        self.attempts: list[Claimed] = []

    async def step(self) -> None:
        deeds: list[Callable[[], Awaitable[object]]] = [
            self.run, self.run, self.project.stop, self.project.force_stop, self.edit, self.edit, self.claim,
            self.claim, self.end, self.end, self.cancel, self.revive, self.stall, self.look_after,
        ]  # fmt: skip
        await self.chance.choice(deeds)()

    async def run(self) -> None:
        named = self.chance.choice([None, None, *ITEMS])
        await self.project.start(self.chance.choice(["single", "loop"]), named)

    async def edit(self) -> None:
        one, other = self.chance.sample(ITEMS, 2)
        match self.chance.randrange(4):
            case 0:
                await self.project.move(one, before=other)
            case 1:
                await self.project.edit(one, priority=1)
            case 2:
                await self.project.skip(one)
            case _:
                await self.project.requeue(one)

    async def claim(self) -> None:
        status = await self.project.status()
        if status.current_task_id is not None:
            answer = await self.engine.claim(status.current_task_id)
            self.attempts += [answer] if isinstance(answer, Claimed) else []

    async def end(self) -> None:
        if self.attempts:
            attempt = self.chance.choice(self.attempts)
            how = self.chance.choice(["complete", "complete", "bury", "interrupt"])
            await tasks.end(self.engine.pool, [an_ending(attempt, how)], RULES)

    async def cancel(self) -> None:
        if (task_id := (await self.project.status()).current_task_id) is not None:
            await tasks.cancel(self.engine.pool, task_id)

    async def revive(self) -> None:
        runs = await self.project.runs()
        if runs:
            await self.engine.revive(self.chance.choice(runs).task_id)

    async def stall(self) -> None:
        await tasks.stall(self.engine.pool, expired_for_seconds=None, dead_workers=["worker-1"])

    async def look_after(self) -> None:
        for project_id in await looking_after.unproven(self.engine.pool):
            await operations.prove_stopped(self.engine.pool, project_id)
        assert await looking_after.count_orphans(self.engine.pool) == 0


@pytest.mark.parametrize("seed", range(3))
def test_what_must_never_be_never_is(seed: int, servers: object, migrated_template: str) -> None:
    @on_the_engine
    async def test(engine: Engine) -> None:
        chance = random.Random(seed)
        walk = Walk(engine, await Project.made(engine, *ITEMS, on_failure="continue"), chance)
        for _ in range(STEPS):
            await asyncio.gather(*(walk.step() for _ in range(AT_ONCE)))
            for what, query in BROKEN.items():
                assert await engine.pool.fetch(query) == [], what
        assert len(await walk.project.runs()) > 3, "the walk has come to something"

    test(servers=servers, migrated_template=migrated_template)


@on_the_engine
async def test_after_a_stop_has_answered_nothing_starts(engine: Engine) -> None:
    """Stops and ends of the run's task meet: whoever comes second sees the other."""
    for number in range(12):
        project = await Project.made(engine, "one", "two", "three")
        await project.start("loop")
        attempt = await project.claimed()
        stop = project.stop if number % 2 else project.force_stop
        await asyncio.gather(stop(), engine.finish(attempt))
        runs = await project.runs()
        assert [run for run in runs if run.ended_at is None] == []
        assert (await project.state())[0] == "idle"

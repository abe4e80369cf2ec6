"""Random walks through the lives of workflows: nothing starts after an escalation, and in the end the counts agree."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.engine.store import Engine, on_the_engine
from tests.support.engine.workflows import AWorkflow, a_workflow, compared, in_a_workflow, tidy_up
from windlass.shared.features.workflows import operations
from windlass.shared.features.workflows.operations import Resumption
from windlass.shared.store import tasks
from windlass.shared.store.tasks import Claimed, WorkflowCancelled

WALKS, STEPS = 6, 60


class Walk:
    """One step after another, each by lot; what is claimed must not be of a workflow that stands."""

    def __init__(self, engine: Engine, chance: random.Random, flows: Sequence[AWorkflow]) -> None:
        self.engine = engine
        self.chance = chance
        self.flows = flows
        self.running: list[Claimed] = []

    async def step(self) -> None:
        steps = [self.claim, self.claim, self.claim, self.end, self.end, self.end, self.revive, self.cancel_one,
                 self.join, self.resume, self.tidy, self.stall, self.cancel]  # fmt: skip
        weights = [1] * (len(steps) - 1) + [0.15]
        await self.chance.choices(steps, weights)[0]()

    async def one(self, *statuses: str) -> tuple[AWorkflow, Any] | None:
        flow = self.chance.choice(self.flows)
        rows = await self.engine.pool.fetch(
            "SELECT task_id, status FROM tasks WHERE workflow_id = $1 AND status = ANY ($2) ORDER BY task_id",
            str(flow.workflow_id),
            list(statuses),
        )
        return (flow, self.chance.choice(rows)["task_id"]) if rows else None

    async def claim(self) -> None:
        if found := await self.one("queued", "retrying"):
            flow, task_id = found
            answer = await self.engine.claim(task_id)
            if isinstance(answer, Claimed):
                # Counted only now: the claim itself has to know of failures that no turn has counted.
                row = await flow.row()
                assert row.status != "escalated"
                assert not row.cancel_requested
                self.running.append(answer)

    async def end(self) -> None:
        if self.running:
            attempt = self.running.pop(self.chance.randrange(len(self.running)))
            transition = self.chance.choice(["complete", "complete", "bury", "retry", "interrupt"])
            await self.engine.finish(attempt, transition, result=[1, 2] if transition == "complete" else None)

    async def stall(self) -> None:
        if self.running:
            await self.engine.lapse(self.running.pop().task_id)
            await tasks.stall(self.engine.pool)

    async def revive(self) -> None:
        if found := await self.one("dead", "cancelled"):
            await self.engine.revive(found[1])

    async def cancel_one(self) -> None:
        if found := await self.one("blocked", "queued", "retrying"):
            await self.engine.cancel(found[1])

    async def join(self) -> None:
        flow = self.chance.choice(self.flows)
        wanted = in_a_workflow(flow.workflow_id, max_retries=1)
        try:
            await tasks.submit(self.engine.pool, [wanted])
        except WorkflowCancelled:
            assert (await flow.row()).cancel_requested

    async def resume(self) -> None:
        flow = self.chance.choice(self.flows)
        completed = await self.completed(flow)
        await operations.resume(self.engine.pool, flow.workflow_id, self.chance.choice(list(Resumption)))
        assert completed <= await self.completed(flow), "what completed is never run again"

    async def completed(self, flow: AWorkflow) -> set[str]:
        return {key for key, status in (await flow.statuses()).items() if status == "completed"}

    async def cancel(self) -> None:
        await operations.cancel(self.engine.pool, self.chance.choice(self.flows).workflow_id)

    async def tidy(self) -> None:
        await tidy_up(self.engine)


@pytest.mark.parametrize("seed", range(WALKS))
def test_a_random_walk(servers: Any, migrated_template: str, seed: int) -> None:
    walk(servers=servers, migrated_template=migrated_template, seed=seed)


@on_the_engine
async def walk(engine: Engine, seed: int) -> None:
    chance = random.Random(seed)
    async with compared(engine):
        flows = []
        for threshold in (None, 1, 2):
            keys = [f"t{number}" for number in range(6)]
            graph = {key: chance.sample(keys[:at], min(at, chance.randrange(3))) for at, key in enumerate(keys)}
            loose = {key: waits[:1] for key, waits in graph.items() if waits and chance.random() < 0.3}
            graph |= {"pages": ["t0"], "join": ["pages"]}
            fields = {key: {"max_retries": 1} for key in graph}
            flows.append(
                await a_workflow(
                    engine, graph, for_each={"pages": ("t0", "")}, after_end=loose, fields=fields,
                    failure_threshold=threshold,
                )
            )  # fmt: skip
        steps = Walk(engine, chance, flows)
        for _ in range(STEPS):
            await steps.step()
        await tidy_up(engine)
        assert await operations.count_drift(engine.pool) == []
        for flow in flows:
            row = await flow.row()
            halted = row.status == "escalated"
            waiting = await engine.pool.fetch(
                "SELECT held FROM tasks WHERE workflow_id = $1 AND status IN ('blocked', 'queued', 'retrying')",
                str(flow.workflow_id),
            )
            assert all((each["held"] == ["workflow"]) == halted for each in waiting), row.status

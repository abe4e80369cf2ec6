"""A small crowd of tasks for moves to meet over: families in every state, whose ids are dealt by lot."""

import random
from collections.abc import Sequence
from uuid import UUID, uuid4

import asyncpg
from uuid_utils.compat import uuid7

from tests.support.engine.keyed import with_key
from tests.support.engine.one_order import intend_one
from tests.support.engine.projects import Project
from tests.support.engine.schedules import Schedule, a_task
from tests.support.engine.schedules import a_workflow as a_workflow_to_start
from tests.support.engine.store import RULES, Engine, a_submission, an_ending
from tests.support.engine.webhooks import Endpoint, by_name
from tests.support.engine.workflows import AWorkflow, a_workflow, in_a_workflow
from windlass.shared.schedules.words import Overlap
from windlass.shared.store import orders, tasks
from windlass.shared.store.access import keys
from windlass.shared.store.order_steps import Intent
from windlass.shared.store.tasks import Ask, Claim, Claimed, Submission

PROVIDERS = {"narrow": 6, "wide": None, "zealous": 8}
"""With their limits."""

WORKERS = ("worker-1", "worker-2", "worker-3")
CROWD = 16

KEYS = ("", "one", "other")
"""Concurrency keys of the crowd; who has the first has none."""

KEY_LIMITS = (2, 3)
"""Between which the limit is changed."""


FLOW = {
    "draft": [], "list": [], "pages": ["list"], "left": ["draft"], "whatever": ["draft"], "asked": [],
    "join": ["left", "pages"],
}  # fmt: skip
"""What the tasks of a workflow wait for."""


class Yard:
    """Who is there at the moment. The choices are a generator's, so that a drill can be repeated."""

    def __init__(self, engine: Engine, chance: random.Random) -> None:
        self.pool: asyncpg.Pool = engine.pool
        self.engine = engine
        self.chance = chance
        self.everybody: set[UUID] = set()
        self.crowd: list[UUID] = []
        self.attempts: list[Claimed] = []
        self.orders: list[tuple[Claimed, UUID]] = []
        self.projects: list[Project] = []
        self.flows: list[AWorkflow] = []
        self.schedules: list[Schedule] = []
        self.hooks: list[Endpoint] = []

    async def revoke_a_key(self) -> None:
        """Where the yard has hooks, their owner has another: what happens meanwhile has to be told to them."""
        await keys.revoke(self.pool, "ann")
        await self.engine.sql("UPDATE api_keys SET revoked_at = NULL")

    async def gather(self) -> None:
        """A new crowd. Ids are given by lot: a child's may be smaller than its parents', as when clocks differ."""
        ids = [uuid7() for _ in range(CROWD)]
        self.chance.shuffle(ids)
        self.projects = [
            await Project.made(self.engine, "one", "two", "three", "four", provider="wide") for _ in range(2)
        ]
        for project in self.projects:
            await project.start("loop")
        self.flows = [await self.a_flow() for _ in range(2)]
        self.schedules = await self.some_schedules()
        self.crowd = [*ids, *[await project.task() for project in self.projects]]
        self.crowd += [task_id for flow in self.flows for task_id in flow.ids.values()]
        self.attempts, self.orders = [], []
        self.hooks = [await Endpoint.made(self.engine) for _ in range(2)]
        parents, children, grandchildren = ids[:8], ids[8:13], ids[13:]
        # The last two of the parents have grown too old already.
        await self.submit(
            [self.a_task(each, max_age_seconds=0.0 if each in parents[-2:] else None) for each in parents]
        )
        # Some under keys that others submit under, too.
        keyed = {each: f"key-{number}" for number, each in enumerate(children[:3])}
        await self.submit(
            [
                self.a_task(each, depends_on=self.chance.sample(parents, 2), dedupe_key=keyed.get(each))
                for each in children
            ]
        )
        await self.submit([self.a_task(each, depends_on=self.chance.sample(children, 2)) for each in grandchildren])
        # What plain tasks and those of a workflow wait for is also another workflow's.
        strangers = [flow.ids["draft"] for flow in self.flows]
        await self.submit([self.a_task(depends_on=[*strangers, parents[0]])])
        await self.submit([in_a_workflow(flow.workflow_id, depends_on=strangers) for flow in self.flows])
        await self.claim(parents[:6])
        await self.claim([flow.ids["list"] for flow in self.flows])
        if self.attempts:
            await tasks.end(self.pool, [an_ending(self.attempts[0], "bury")], RULES)
            await self.order(self.attempts[-1])

    async def a_flow(self) -> AWorkflow:
        """One failure stops it; its ids are dealt by lot, and it has a list and a question."""
        fields = {key: {"provider": self.chance.choice(list(PROVIDERS)), "max_retries": 1} for key in FLOW}
        fields["asked"]["approval"] = {"message": "go on?", "expires_in_seconds": 0}
        flow = await a_workflow(
            self.engine,
            FLOW,
            for_each={"pages": ("list", "")},
            after_end={"whatever": ["draft"]},
            fields=fields,
            failure_threshold=1,
            ids_by_lot=self.chance,
        )
        self.everybody |= set(flow.ids.values())
        return flow

    async def some_schedules(self) -> list[Schedule]:
        """Of tasks, workflows and the projects that are there, with every overlap; those of before are forgotten."""
        await self.engine.sql("UPDATE schedules SET deleted_at = now(), next_at = NULL, next_due_at = NULL")
        projects = [{"project_id": str(each.project_id), "mode": "loop"} for each in self.projects]
        targets = [("task", a_task(provider="wide")), ("workflow", a_workflow_to_start())]
        wanted = [*targets, *(("project", each) for each in projects)] * 2
        overlaps = [*Overlap, *reversed(Overlap)]
        return [
            await Schedule.made(
                self.engine, f"number {number}", kind=kind, prepared=prepared, overlap=overlap, pause_after_failures=2
            )
            for number, ((kind, prepared), overlap) in enumerate(zip(wanted, overlaps, strict=True))
        ]

    def a_task(self, task_id: UUID | None = None, **fields: object) -> Submission:
        usual = {"provider": self.chance.choice(list(PROVIDERS)), "max_retries": 1}
        key = self.chance.choice(KEYS)
        told = by_name(self.chance.choice(self.hooks).url) if self.hooks and self.chance.random() < 0.4 else {}
        kinds = [with_key(key) if key else {}, told]
        both = {"concerns": sum(each.get("concerns", 0) for each in kinds)}
        return a_submission(**{"task_id": task_id or uuid7(), **usual, **kinds[0], **told, **both, **fields})

    async def submit(self, submissions: Sequence[Submission]) -> None:
        await tasks.submit(self.pool, submissions)
        self.everybody |= {each.task_id for each in submissions}

    async def claim(self, wanted: Sequence[UUID]) -> None:
        claims = [Claim(task_id, uuid4()) for task_id in wanted]
        answers = await tasks.claim(self.pool, self.worker(), claims, 30, alone=self.chance.random() < 0.5)
        self.attempts += [answer for answer in answers if isinstance(answer, Claimed)]

    def an_ask(self) -> Ask:
        """For a few places, of some of the queues."""
        names = self.chance.sample(list(PROVIDERS), self.chance.randrange(1, len(PROVIDERS) + 1))
        return Ask({f"probe.{name}": 3 for name in names}, [uuid4() for _ in range(3 * len(names))])

    async def order(self, attempt: Claimed) -> None:
        generation_id = uuid7()
        intent = Intent(generation_id, "draw", {}, uuid4().bytes.hex())
        if await intend_one(self.pool, attempt, intent):
            await orders.move(self.pool, attempt, generation_id, "place", job_id=str(generation_id))
            self.orders.append((attempt, generation_id))

    def project(self) -> Project:
        return self.chance.choice(self.projects)

    def schedule(self) -> Schedule:
        return self.chance.choice(self.schedules)

    def flow(self) -> AWorkflow:
        return self.chance.choice(self.flows)

    def hook(self) -> Endpoint:
        return self.chance.choice(self.hooks)

    def some(self, number: int = 8) -> list[UUID]:
        """Some of the crowd, in any order."""
        return self.chance.sample(self.crowd, number)

    def one(self) -> UUID:
        return self.chance.choice(self.crowd)

    def running(self, number: int = 5) -> list[Claimed]:
        """Some that run, or ran, in any order."""
        return self.chance.sample(self.attempts, min(number, len(self.attempts)))

    def provider(self) -> str:
        return self.chance.choice(list(PROVIDERS))

    def worker(self) -> str:
        return self.chance.choice(WORKERS)

"""A small crowd of tasks for moves to meet over: families in every state, whose ids are dealt by lot."""

import random
from collections.abc import Sequence
from uuid import UUID, uuid4

import asyncpg
from uuid_utils.compat import uuid7

from tests.support.engine.keyed import with_key
from tests.support.engine.store import RULES, Engine, a_submission, an_ending
from windlass.shared.store import orders, tasks
from windlass.shared.store.orders import Intent
from windlass.shared.store.tasks import Claim, Claimed, Submission

PROVIDERS = {"narrow": 6, "wide": None, "zealous": 8}
"""With their limits."""

WORKERS = ("worker-1", "worker-2", "worker-3")
CROWD = 16

KEYS = ("", "one", "other")
"""Concurrency keys of the crowd; who has the first has none."""

KEY_LIMITS = (2, 3)
"""Between which the limit is changed."""


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
        self.bells: list[tuple[UUID, list[UUID]]] = []

    async def gather(self) -> None:
        """A new crowd. Ids are given by lot: a child's may be smaller than its parents', as when clocks differ."""
        ids = [uuid7() for _ in range(CROWD)]
        self.chance.shuffle(ids)
        self.crowd = ids
        self.attempts, self.orders, self.bells = [], [], []
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
        await self.claim(parents[:6])
        if self.attempts:
            await tasks.end(self.pool, [an_ending(self.attempts[0], "bury")], RULES)
            await self.order(self.attempts[-1])

    def a_task(self, task_id: UUID | None = None, **fields: object) -> Submission:
        usual = {"provider": self.chance.choice(list(PROVIDERS)), "max_retries": 1}
        key = self.chance.choice(KEYS)
        return a_submission(**{"task_id": task_id or uuid7(), **usual, **(with_key(key) if key else {}), **fields})

    async def submit(self, submissions: Sequence[Submission]) -> None:
        await tasks.submit(self.pool, submissions)
        self.everybody |= {each.task_id for each in submissions}

    async def claim(self, wanted: Sequence[UUID]) -> None:
        claims = [Claim(task_id, uuid4()) for task_id in wanted]
        answers = await tasks.claim(self.pool, self.worker(), claims, 30, alone=self.chance.random() < 0.5)
        self.attempts += [answer for answer in answers if isinstance(answer, Claimed)]

    async def order(self, attempt: Claimed) -> None:
        generation_id = uuid7()
        intent = Intent(generation_id, "draw", {}, uuid4().bytes.hex())
        if await orders.intend(self.pool, attempt, intent):
            await orders.move(self.pool, attempt, generation_id, "place", job_id=str(generation_id))
            self.orders.append((attempt, generation_id))

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

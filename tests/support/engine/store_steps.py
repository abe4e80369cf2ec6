"""What clients, workers, dispatchers, janitors and operators may do, as steps that Hypothesis puts together."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID, uuid4

from hypothesis import strategies as st

from tests.support.engine.flow import let_the_time_pass
from tests.support.engine.store import Engine, an_ending
from windlass.shared import db
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.flow_control import flow
from windlass.shared.store.flow_control.flow import Rules
from windlass.shared.store.operating import queues
from windlass.shared.store.tasks import Ask, Claim, Claimed, dependencies

PROVIDERS = ("narrow", "wide")
NEWEST = 8
"""Steps choose among so many of the newest tasks and attempts, so that they meet."""

NERVOUS = Rules.of(Settings(breaker_least_results=2))
"""A breaker that opens soon, so that it does."""


class World:
    """What the steps know of each other: tasks submitted, attempts granted, limits in force at some time of a round."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.pool = engine.pool
        self.tasks: list[UUID] = []
        self.attempts: list[Claimed] = []
        self.limits: dict[str, set[int | None]] = {"narrow": {2}, "wide": {None}}

    def task(self, which: int) -> UUID | None:
        return self.tasks[-1 - which % min(NEWEST, len(self.tasks))] if self.tasks else None

    def attempt(self, which: int) -> Claimed | None:
        return self.attempts[-1 - which % min(NEWEST, len(self.attempts))] if self.attempts else None

    def have_ended(self, attempt: Claimed) -> None:
        """It is chosen again only when there are few others: mostly those that may still run should be."""
        self.attempts.remove(attempt)
        self.attempts.insert(0, attempt)


async def persistently(call: Callable[[], Awaitable[Any]]) -> Any:
    """Somebody may be in the way for a moment: every caller repeats a call that was rolled back for that."""
    for _ in range(5):
        try:
            return await call()
        except db.CONTENDED:
            await asyncio.sleep(0.01)
    return await call()


class Step(Protocol):
    """Something that somebody does."""

    async def happen(self, world: World) -> None: ...


@dataclass(frozen=True)
class Submit:
    provider: str
    parents: frozenset[int]
    priority: int
    max_retries: int

    async def happen(self, world: World) -> None:
        parents = [task_id for which in self.parents if (task_id := world.task(which))]
        fields = {"provider": self.provider, "priority": self.priority, "max_retries": self.max_retries}
        world.tasks.append(
            await persistently(lambda: world.engine.submit(depends_on=parents, max_age_seconds=3600, **fields))
        )


@dataclass(frozen=True)
class ClaimNext:
    """As a worker does it that was rung for: whatever is next of some queues."""

    names: frozenset[str]
    places: int

    async def happen(self, world: World) -> None:
        queues = {f"probe.{name}": self.places for name in sorted(self.names)}
        ask = Ask(queues, [uuid4() for _ in range(self.places)])
        answer = await persistently(lambda: tasks.claim_next(world.pool, "worker-1", ask, 30))
        world.attempts += answer.claimed


@dataclass(frozen=True)
class EndAndNext:
    """One attempt ends, and its place is taken again in the same call."""

    which: int
    transition: str
    name: str

    async def happen(self, world: World) -> None:
        if attempt := world.attempt(self.which):
            result = {"attempt": attempt.attempt} if self.transition == "complete" else None
            ending = an_ending(attempt, self.transition, result=result)
            ask = Ask({f"probe.{self.name}": 2}, [uuid4(), uuid4()])
            call = lambda: tasks.end_and_next(world.pool, [ending], NERVOUS, "worker-1", ask, 30)  # noqa: E731
            _, answer = await persistently(call)
            world.have_ended(attempt)
            world.attempts += answer.claimed


@dataclass(frozen=True)
class ClaimSome:
    which: frozenset[int]
    alone: bool

    async def happen(self, world: World) -> None:
        claims = [Claim(task_id, uuid4()) for which in self.which if (task_id := world.task(which))]
        answers = await persistently(lambda: tasks.claim(world.pool, "worker-1", claims, 30, alone=self.alone))
        world.attempts += [answer for answer in answers if isinstance(answer, Claimed)]


@dataclass(frozen=True)
class ClaimAgain:
    """The reply was lost, and the claim is repeated with its token."""

    which: int

    async def happen(self, world: World) -> None:
        if attempt := world.attempt(self.which):
            answer = await persistently(lambda: world.engine.claim(attempt.task_id, token=attempt.claim_token))
            if isinstance(answer, Claimed) and answer.attempt != attempt.attempt:
                world.attempts.append(answer)


@dataclass(frozen=True)
class Say:
    which: int

    async def happen(self, world: World) -> None:
        if attempt := world.attempt(self.which):
            line = {"type": "output", "data": {"text": "…"}}
            await persistently(lambda: world.engine.say(attempt, progress={"message": "…"}, events=[line, line]))


@dataclass(frozen=True)
class End:
    which: int
    transition: str

    async def happen(self, world: World) -> None:
        if attempt := world.attempt(self.which):
            result = {"attempt": attempt.attempt} if self.transition == "complete" else None
            words = [{"type": "output", "data": {"text": "last words"}}]
            await persistently(lambda: world.engine.finish(attempt, self.transition, result=result, events=words))
            world.have_ended(attempt)


@dataclass(frozen=True)
class Fail:
    """By the provider's fault, or told 429: both say something about the provider."""

    which: int
    rate_limited: bool
    delay_seconds: float

    async def happen(self, world: World) -> None:
        if attempt := world.attempt(self.which):
            ending = an_ending(
                attempt,
                "retry",
                rate_limited=self.rate_limited,
                provider_failed=not self.rate_limited,
                retry_cost=int(not self.rate_limited),
                delay_seconds=self.delay_seconds,
            )
            await persistently(lambda: tasks.end(world.pool, [ending], NERVOUS))
            world.have_ended(attempt)


@dataclass(frozen=True)
class LetTimePass:
    """Pauses and open breakers come to their end."""

    async def happen(self, world: World) -> None:
        await persistently(lambda: let_the_time_pass(world.engine))


@dataclass(frozen=True)
class Operate:
    provider: str
    changes: tuple[tuple[str, object], ...]

    async def happen(self, world: World) -> None:
        await persistently(lambda: flow.change(world.pool, self.provider, dict(self.changes)))


@dataclass(frozen=True)
class Renew:
    which: int

    async def happen(self, world: World) -> None:
        if attempt := world.attempt(self.which):
            await persistently(lambda: world.engine.renew(attempt))


@dataclass(frozen=True)
class LoseWorker:
    which: int

    async def happen(self, world: World) -> None:
        if task_id := world.task(self.which):
            await world.engine.sql(
                """
                UPDATE tasks SET lease_expires_at = clock_timestamp() - interval '1 s'
                WHERE task_id = $1 AND status = 'running'
                """,
                task_id,
            )
            await persistently(lambda: tasks.stall(world.pool))


@dataclass(frozen=True)
class GrowOld:
    which: int

    async def happen(self, world: World) -> None:
        if task_id := world.task(self.which):
            await world.engine.outlive(task_id)
            await persistently(lambda: tasks.expire(world.pool))


@dataclass(frozen=True)
class Cancel:
    which: int

    async def happen(self, world: World) -> None:
        if task_id := world.task(self.which):
            await persistently(lambda: world.engine.cancel(task_id))


@dataclass(frozen=True)
class Revive:
    which: int

    async def happen(self, world: World) -> None:
        if task_id := world.task(self.which):
            await persistently(lambda: world.engine.revive(task_id))


@dataclass(frozen=True)
class Recheck:
    async def happen(self, world: World) -> None:
        await persistently(lambda: dependencies.recheck(world.pool))


@dataclass(frozen=True)
class Settle:
    async def happen(self, world: World) -> None:
        await persistently(lambda: dependencies.settle_next(world.pool, at_most=1))


@dataclass(frozen=True)
class Fold:
    async def happen(self, world: World) -> None:
        await persistently(lambda: queues.fold_tallies(world.pool))


@dataclass(frozen=True)
class ChangeLimit:
    provider: str
    limit: int | None

    async def happen(self, world: World) -> None:
        world.limits[self.provider].add(self.limit)
        await world.engine.provide(self.provider, limit=self.limit)


@dataclass(frozen=True)
class BecomeDue:
    which: int

    async def happen(self, world: World) -> None:
        if task_id := world.task(self.which):
            await world.engine.become_due(task_id)


which = st.integers(0, NEWEST - 1)
several = st.frozensets(which, min_size=1, max_size=3)
names = st.sampled_from(PROVIDERS)
submissions = st.builds(
    Submit,
    provider=names,
    parents=st.just(frozenset()) | st.frozensets(which, max_size=2),
    priority=st.integers(0, 9),
    max_retries=st.integers(0, 2),
)
steps: st.SearchStrategy[Step] = st.one_of(
    submissions,
    st.builds(ClaimSome, which=several, alone=st.booleans()),
    st.builds(ClaimSome, which=st.frozensets(which, min_size=NEWEST), alone=st.booleans()),
    *(st.builds(End, which=which, transition=st.just(each)) for each in ("complete", "retry", "interrupt", "bury")),
    st.builds(Cancel, which=which),
    st.builds(Revive, which=which),
    st.builds(LoseWorker, which=which),
    st.builds(Say, which=which),
    st.builds(Renew, which=which),
    st.builds(ClaimAgain, which=which),
    st.builds(GrowOld, which=which),
    st.builds(ChangeLimit, provider=names, limit=st.sampled_from([2, 1, 3, 0, None])),
    st.builds(ClaimNext, names=st.frozensets(names, min_size=1), places=st.integers(1, 3)),
    *(
        st.builds(EndAndNext, which=which, transition=st.just(each), name=names)
        for each in ("complete", "retry", "interrupt")
    ),
    st.builds(Recheck),
    st.builds(Settle),
    st.builds(Fold),
    st.builds(BecomeDue, which=which),
    st.builds(Fail, which=which, rate_limited=st.booleans(), delay_seconds=st.sampled_from([0, 30])),
    st.builds(Fail, which=which, rate_limited=st.just(True), delay_seconds=st.just(0)),
    st.builds(LetTimePass),
    st.builds(
        Operate,
        provider=names,
        changes=st.sampled_from(
            [
                (("paused", True),),
                (("paused", False),),
                (("breaker", "open"),),
                (("breaker", None), ("paused", None)),
            ]
        ),
    ),
)

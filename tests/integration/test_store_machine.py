"""Whatever clients, workers, dispatchers and janitors do at the same time, the store keeps its promises.

Hypothesis makes up the steps; those of one round run at once, each on a connection of its own. After every round the
whole database is read and compared with the state machine.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any, Protocol
from uuid import UUID, uuid4

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from shared import db
from shared.admission import admit
from shared.settings import Settings
from shared.states import TERMINAL, TRANSITIONS, WAITING, State, allows
from shared.store import flow, providers, queues, tasks
from shared.store.flow import Rules
from shared.store.tasks import Claim, Claimed
from tests.integration.engine import Engine, an_ending, an_engine
from tests.integration.flow import let_the_time_pass

PROVIDERS = ("narrow", "wide")
NEWEST = 8
"""Steps choose among so many of the newest tasks and attempts, so that they meet."""

NERVOUS = Rules.of(Settings(breaker_least_results=2))
"""A breaker that opens soon, so that it does."""

OFTEN = settings(
    max_examples=35,
    stateful_step_count=30,
    derandomize=True,
    deadline=None,
    phases=[Phase.generate],  # what depends on who came first cannot be made smaller
    suppress_health_check=list(HealthCheck),
)


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
class Dispatch:
    async def happen(self, world: World) -> None:
        for view in await providers.look(world.pool, heard_within_seconds=30):
            await providers.reserve(world.pool, view, admit(view), uuid4())


@dataclass(frozen=True)
class ClaimSome:
    which: frozenset[int]

    async def happen(self, world: World) -> None:
        claims = [Claim(task_id, uuid4()) for which in self.which if (task_id := world.task(which))]
        answers = await persistently(lambda: tasks.claim(world.pool, "worker-1", claims, 30))
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
        await persistently(lambda: tasks.settle_blocked(world.pool))


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
    st.builds(ClaimSome, which=several),
    st.builds(ClaimSome, which=st.frozensets(which, min_size=NEWEST)),
    st.builds(End, which=which, transition=st.just("complete")),
    st.builds(End, which=which, transition=st.just("retry")),
    st.builds(End, which=which, transition=st.just("interrupt")),
    st.builds(End, which=which, transition=st.just("bury")),
    st.builds(Cancel, which=which),
    st.builds(Revive, which=which),
    st.builds(LoseWorker, which=which),
    st.builds(Say, which=which),
    st.builds(Renew, which=which),
    st.builds(ClaimAgain, which=which),
    st.builds(GrowOld, which=which),
    st.builds(ChangeLimit, provider=names, limit=st.sampled_from([2, 1, 3, 0, None])),
    st.builds(Dispatch),
    st.builds(Recheck),
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


class StoreMachine(RuleBasedStateMachine):
    """Rounds of things that happen at once, and what must hold after each."""

    def __init__(self, engine: Engine, runner: asyncio.Runner) -> None:
        super().__init__()
        self.runner = runner
        self.world = World(engine)
        self.attempts_before: Counter[UUID] = Counter()
        self.running_before: Counter[str] = Counter()
        self.on_trial_since: dict[str, tuple[int, datetime]] = {}
        runner.run(self._begin())

    async def _begin(self) -> None:
        await self.world.engine.sql(
            "TRUNCATE tasks, task_events, task_dependencies, task_tallies, task_counts, providers, provider_results,"
            " provider_events"
        )
        for name, (limit,) in self.world.limits.items():
            await self.world.engine.provide(name, limit=limit)

    @initialize(graph=st.lists(submissions, min_size=3, max_size=6))
    def somebody_has_submitted_a_few(self, graph: list[Submit]) -> None:
        for submission in graph:
            self.runner.run(submission.happen(self.world))

    @rule(at_once=st.lists(steps, min_size=2, max_size=4))
    def several_things_happen_at_once(self, at_once: list[Step]) -> None:
        async def happen() -> None:
            async with asyncio.TaskGroup() as group:
                for step in at_once:
                    group.create_task(step.happen(self.world))

        self.runner.run(happen())

    @invariant()
    def every_promise_is_kept(self) -> None:
        rows, events, edges = self.runner.run(self._read())
        assert set(rows) == set(self.world.tasks)
        for task_id, row in rows.items():
            check_history(row, events.get(task_id, []))
            check_parents(row, [rows[parent]["status"] for parent, child in edges if child == task_id])
            assert row["attempt"] >= self.attempts_before[task_id], "attempts only grow"
            if row["status"] == "completed":
                assert row["result"] == {"attempt": row["attempt"]}, "the result is its last attempt's"
        self.check_slots(Counter(row["provider"] for row in rows.values() if row["status"] == "running"))
        self.runner.run(self._check_trials())
        self.attempts_before = Counter({task_id: row["attempt"] for task_id, row in rows.items()})

    def check_slots(self, running: Counter[str]) -> None:
        """No claim went beyond the limit of its moment; a limit that was lowered lets what runs end."""
        for name, limits in self.world.limits.items():
            known = [limit for limit in limits if limit is not None]
            if len(known) == len(limits):
                assert running[name] <= max(*known, self.running_before[name]), f"{name} holds too many slots"
        self.running_before = running
        self.world.limits = self.runner.run(self._read_limits())

    @invariant()
    def what_has_ended_is_counted(self) -> None:
        rows = self.runner.run(self.world.pool.fetch("SELECT user_id, provider, status FROM tasks"))
        _, states = self.runner.run(queues.status(self.world.pool, user_id=None, heard_within_seconds=30))
        assert states == {state: sum(row["status"] == state for row in rows) for state in State}

    async def _check_trials(self) -> None:
        """While a provider is on trial at most one task is started, and none while an operator has paused it.

        A round in which anything happened to the provider proves nothing: who came first cannot be told.
        """
        known, self.on_trial_since = self.on_trial_since, {}
        for row in await self.world.pool.fetch(
            """
            SELECT p.name, p.paused, is_on_trial(p) AS on_trial, clock_timestamp() AS now,
                   (SELECT coalesce(max(e.event_id), 0) FROM provider_events e
                    WHERE e.provider = p.name AND e.type <> 'half-open') AS last_event,
                   ARRAY(SELECT t.started_at FROM tasks t WHERE t.provider = p.name AND t.status = 'running') AS started
            FROM providers p WHERE p.paused OR is_on_trial(p)
            """
        ):
            last_event, since = known.get(row["name"], (None, row["now"]))
            if last_event != row["last_event"]:
                since = row["now"]
            later = sum(started > since for started in row["started"])
            assert later <= (0 if row["paused"] else 1), f"{row['name']} has {later} trials"
            self.on_trial_since[row["name"]] = (row["last_event"], since)

    async def _read_limits(self) -> dict[str, set[int | None]]:
        rows = await self.world.pool.fetch(
            "SELECT name, configured_limit FROM providers WHERE name = ANY ($1)", PROVIDERS
        )
        return {row["name"]: {row["configured_limit"]} for row in rows}

    async def _read(self) -> tuple[dict[UUID, db.Row], dict[UUID, list[db.Row]], list[tuple[UUID, UUID]]]:
        rows = await self.world.pool.fetch("SELECT * FROM tasks")
        events: dict[UUID, list[db.Row]] = {}
        for event in await self.world.pool.fetch("SELECT * FROM task_events ORDER BY task_id, seq"):
            events.setdefault(event["task_id"], []).append(event)
        edges = await self.world.pool.fetch("SELECT parent_id, child_id FROM task_dependencies")
        return {row["task_id"]: row for row in rows}, events, [(edge[0], edge[1]) for edge in edges]


def check_history(row: db.Row, events: list[db.Row]) -> None:
    """The events are numbered without a gap and lead, by legal transitions only, to where the task is."""
    assert [event["seq"] for event in events] == list(range(1, row["last_seq"] + 1)), "seq has no gap"
    assert all(one["at"] <= other["at"] for one, other in pairwise(events)), "time goes one way"
    state: State | None = None
    attempt = 0
    for event in events:
        state, attempt = follow(event, state, attempt)
    assert (state, attempt) == (row["status"], row["attempt"])
    lives = 1 + sum(event["type"] == "revive" for event in events)
    ends = sum(event["data"].get("status") in TERMINAL for event in events)
    assert ends == lives - (state not in TERMINAL), "a life has one end"


def follow(event: db.Row, state: State | None, attempt: int) -> tuple[State, int]:
    """Where a task is after an event."""
    kind = event["type"]
    if kind not in TRANSITIONS:
        assert state is not None
        assert state in (WAITING if kind == "dispatch" else (State.RUNNING,)), f"{kind} while {state}"
        assert event["attempt"] == attempt
        return state, attempt
    target = State(event["data"]["status"])
    if state is None:
        assert kind == "submit"
        assert target in TRANSITIONS["submit"].targets
    else:
        assert allows(TRANSITIONS[kind], state, target), f"{kind} from {state} to {target}"
    attempt += kind == "claim"
    assert event["attempt"] == attempt, "a claim begins an attempt, and nothing else does"
    return target, attempt


def check_parents(row: db.Row, parents: list[str]) -> None:
    """A blocked task knows how many of its parents have not completed, and waits for none that has failed."""
    unmet = sum(status != "completed" for status in parents)
    if row["status"] == "blocked":
        assert row["unmet"] == unmet > 0
        assert not {"dead", "cancelled"} & set(parents), "it waits for a parent that has failed"
    elif row["status"] not in {"dead", "cancelled"}:
        assert unmet == 0, f"{row['status']} although {unmet} parents have not completed"


def test_whatever_happens_at_once_the_store_keeps_its_promises(database_url: str) -> None:
    # Two calls that wait for each other are meant to happen here, and to be found out soon.
    soon = f"{database_url}?options=-c%20deadlock_timeout%3D20ms"
    with asyncio.Runner() as runner:
        engine = an_engine(soon)
        opened = runner.run(engine.__aenter__())
        try:

            class OnThisDatabase(StoreMachine):
                def __init__(self) -> None:
                    super().__init__(opened, runner)

            run_state_machine_as_test(OnThisDatabase, settings=OFTEN)
        finally:
            runner.run(engine.__aexit__(None, None, None))

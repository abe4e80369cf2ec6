"""Whatever clients, workers, dispatchers and janitors do at the same time, the store keeps its promises.

Hypothesis makes up the steps; those of one round run at once, each on a connection of its own. After every round the
whole database is read and compared with the state machine.
"""

import asyncio
from collections import Counter
from datetime import datetime
from itertools import pairwise
from uuid import UUID

import pytest
from asyncpg import Record
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.support.engine.store import Engine, an_engine
from tests.support.engine.store_steps import PROVIDERS, Step, Submit, World, steps, submissions
from windlass.shared.states import TERMINAL, TRANSITIONS, State
from windlass.shared.store.functions import named
from windlass.shared.store.operating import queues
from windlass.shared.store.tasks import dependencies

OFTEN = settings(
    max_examples=35,
    stateful_step_count=30,
    derandomize=True,
    deadline=None,
    phases=[Phase.generate],  # what depends on who came first cannot be made smaller
    suppress_health_check=list(HealthCheck),
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
            f"CREATE OR REPLACE FUNCTION {named('dependents_at_once')}() RETURNS int LANGUAGE sql IMMUTABLE"
            " AS 'SELECT 1'"
        )
        await self.world.engine.sql(
            "TRUNCATE tasks, task_events, task_dependencies, unsettled, task_tallies, task_counts, providers,"
            " provider_results, provider_events"
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
        """Once the janitor has told the dependents that were left to it: one transaction tells a single one here."""
        self.runner.run(self._settle())
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

    async def _settle(self) -> None:
        while await dependencies.settle_next(self.world.pool, at_most=1):
            pass

    @invariant()
    def every_task_is_counted(self) -> None:
        """However few are looked at, and the rest told by the tallies; of a user as of everybody."""
        rows = self.runner.run(self.world.pool.fetch("SELECT status FROM tasks"))
        expected = {state: sum(row["status"] == state for row in rows) for state in State}
        for user_id, looked_at in ((None, 1), ("ann", 1), ("ann", 5000)):
            _, states = self.runner.run(
                queues.status(self.world.pool, user_id=user_id, heard_within_seconds=30, looked_at=looked_at)
            )
            assert states == expected, f"of {user_id}, {looked_at} looked at"
        assert self.runner.run(queues.mend_tallies(self.world.pool)) == 0

    async def _check_trials(self) -> None:
        """While a provider is on trial at most one task is started, and none while an operator has paused it.

        A round in which anything happened to the provider proves nothing: who came first cannot be told.
        """
        known, self.on_trial_since = self.on_trial_since, {}
        for row in await self.world.pool.fetch(
            f"""
            SELECT p.name, p.paused, {named("is_on_trial")}(p) AS on_trial, clock_timestamp() AS now,
                   (SELECT coalesce(max(e.event_id), 0) FROM provider_events e
                    WHERE e.provider = p.name AND e.type <> 'half-open') AS last_event,
                   ARRAY(SELECT t.started_at FROM tasks t WHERE t.provider = p.name AND t.status = 'running') AS started
            FROM providers p WHERE p.paused OR {named("is_on_trial")}(p)
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

    async def _read(
        self,
    ) -> tuple[dict[UUID, Record], dict[UUID, list[Record]], list[tuple[UUID, UUID]]]:
        rows = await self.world.pool.fetch("SELECT * FROM tasks")
        events: dict[UUID, list[Record]] = {}
        for event in await self.world.pool.fetch("SELECT * FROM task_events ORDER BY task_id, seq"):
            events.setdefault(event["task_id"], []).append(event)
        edges = await self.world.pool.fetch("SELECT parent_id, child_id FROM task_dependencies")
        return {row["task_id"]: row for row in rows}, events, [(edge[0], edge[1]) for edge in edges]


def check_history(row: Record, events: list[Record]) -> None:
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


def follow(event: Record, state: State | None, attempt: int) -> tuple[State, int]:
    """Where a task is after an event."""
    kind = event["type"]
    if kind not in TRANSITIONS:
        assert state is not None
        assert state is State.RUNNING, f"{kind} while {state}"
        assert event["attempt"] == attempt
        return state, attempt
    target = State(event["data"]["status"])
    if state is None:
        assert kind == "submit"
        assert target in TRANSITIONS["submit"].targets
    else:
        transition = TRANSITIONS[kind]
        assert state in transition.sources, f"{kind} from {state}"
        assert target in transition.targets, f"{kind} to {target}"
    attempt += kind == "claim"
    assert event["attempt"] == attempt, "a claim begins an attempt, and nothing else does"
    return target, attempt


def check_parents(row: Record, parents: list[str]) -> None:
    """A blocked task knows how many of its parents have not completed, and waits for none that has failed."""
    unmet = sum(status != "completed" for status in parents)
    if row["status"] == "blocked":
        assert row["unmet"] == unmet > 0
        assert not {"dead", "cancelled"} & set(parents), "it waits for a parent that has failed"
    elif row["status"] not in {"dead", "cancelled"}:
        assert unmet == 0, f"{row['status']} although {unmet} parents have not completed"


@pytest.mark.timeout(900)
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

"""What may start: both claims, `why` and the demand for pods agree in every situation.

Whatever may keep a task from starting is a dimension: a strategy for the statement that brings it about. A new one is
another entry.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from hypothesis import strategies as st

from tests.support.engine.dispatching import start_next
from tests.support.engine.examples import for_examples
from tests.support.engine.flow import look, serve
from tests.support.engine.store import Engine, empty_database
from tests.support.servers.private_servers import Servers
from windlass.shared.explanation import explain
from windlass.shared.reasons import Reason
from windlass.shared.store import tasks
from windlass.shared.store.reading.why import look_at
from windlass.shared.store.record import fetch
from windlass.shared.store.rows import TaskRow
from windlass.shared.store.tasks import Claim, Claimed

WAITING = 8

CLEAR = """
UPDATE providers SET configured_limit = NULL, configured_rate = NULL, rate_moments = '{}', rate_counts = '{}',
    paused = false, paused_until = NULL, breaker_state = 'closed', breaker_until = NULL, trial_token = NULL
"""


def provider_with(changes: str) -> str:
    return f"UPDATE providers SET {changes}"


def tasks_with(changes: str, number: int) -> str:
    """Of the tasks that wait, so many: the oldest first, as all that have the same priority start."""
    return f"""
    UPDATE tasks SET {changes} WHERE task_id IN (
        SELECT task_id FROM tasks WHERE status = 'queued' ORDER BY task_id LIMIT {number})
    """


def waiting_with(changes: str, number: int) -> str:
    """Of those that would start last, so many."""
    return f"""
    UPDATE tasks SET {changes} WHERE task_id IN (
        SELECT task_id FROM tasks WHERE status IN ('queued', 'retrying') AND NOT job_open
        ORDER BY task_id DESC LIMIT {number})
    """


def rate(limit: int, taken: list[tuple[int, int]]) -> str:
    """So many were taken so many seconds ago; after 2,100 they count no longer: a busy machine is a while at it."""
    moments = ", ".join(f"clock_timestamp() - interval '{ago} s'" for ago, _ in taken)
    counts = ", ".join(str(places) for _, places in taken)
    return provider_with(
        f'configured_rate = \'{{"limit": {limit}, "per_seconds": 2000}}\', '
        f"rate_moments = ARRAY[{moments}]::timestamptz[], rate_counts = ARRAY[{counts}]::int[]"
    )


nothing = st.just("SELECT 1")
conditions = st.sampled_from(
    [
        "paused = true",
        "paused_until = now() + interval '1 minute'",
        "paused_until = now() - interval '1 minute'",
        "breaker_state = 'open', breaker_until = now() + interval '1 minute'",
        "breaker_state = 'open', breaker_until = 'infinity'",
        "breaker_state = 'open', breaker_until = now() - interval '1 minute'",
        "breaker_state = 'half-open', breaker_until = now() - interval '1 minute'",
    ]
)


def keyed(limit: int | None, keys: list[str | None]) -> str:
    """The oldest task has the first of these keys, and so on."""
    names = ", ".join("NULL" if key is None else f"'{key}'" for key in keys)
    most = "NULL" if limit is None else limit
    return f"""
    INSERT INTO actors VALUES ('probe', {most}) ON CONFLICT (name) DO UPDATE SET concurrency_limit = {most};
    UPDATE tasks t SET concurrency_key = dealt.key
    FROM (SELECT task_id, (ARRAY[{names}]::text[])[row_number() OVER (ORDER BY task_id)] AS key FROM tasks) AS dealt
    WHERE t.task_id = dealt.task_id
    """


HELD = "held_at = now(), due_at = available_at, available_at = 'infinity', held"

DIMENSIONS = {
    "keys": nothing
    | st.builds(
        keyed,
        st.none() | st.integers(1, 3),
        st.lists(st.sampled_from([None, "a", "b"]), min_size=WAITING, max_size=WAITING),
    ),
    "running": st.integers(0, 3).map(
        lambda number: tasks_with(
            "status = 'running', claim_token = gen_random_uuid(), lease_expires_at = now() + interval '1 h', "
            "attempt = 1, started_at = now(), worker_id = 'worker-1'",
            number,
        )
    ),
    "open jobs": st.integers(0, 2).map(lambda number: tasks_with("job_open = true", number)),
    "retries": st.integers(0, 3).map(lambda number: tasks_with("lane = 'retry', status = 'retrying'", number)),
    "held": nothing | st.integers(1, 2).map(lambda number: waiting_with(f"{HELD} = '{{workflow}}'", number)),
    "limit": nothing | st.integers(0, 2 * WAITING).map(lambda limit: provider_with(f"configured_limit = {limit}")),
    "rate": nothing
    | st.builds(
        rate,
        st.integers(0, WAITING),
        st.lists(st.tuples(st.sampled_from([0, 500, 1500, 1900, 2300, 6000]), st.integers(1, 4)), max_size=4),
    ),
    "condition": nothing | nothing | conditions.map(provider_with),
    "trial": nothing
    | st.just("UPDATE providers SET trial_token = (SELECT claim_token FROM tasks WHERE status = 'running' LIMIT 1)"),
}
"""In this order: what runs was there first."""

situations = st.fixed_dictionaries(DIMENSIONS)


@dataclass(frozen=True)
class Said:
    """How many may start, and how many may go on waiting for their open jobs."""

    starts: int
    resumes: int


async def by_the_next(engine: Engine) -> tuple[Said, set[UUID]]:
    """Whoever has places enough is given so many; and which."""
    granted = await start_next(engine)
    said = Said(sum(not each.job_open for each in granted), sum(each.job_open for each in granted))
    return said, {each.task_id for each in granted}


async def explained(engine: Engine) -> list[tuple[TaskRow, Reason]]:
    """All that wait, each with what its reader is told."""
    view = await look(engine)
    rows = await fetch(engine.pool, TaskRow, "SELECT * FROM tasks WHERE status IN ('queued', 'retrying')")
    return [(row, explain(view, await look_at(engine.pool, row, view.queues)).reason) for row in rows]


async def by_why(engine: Engine) -> Said:
    starting = [row for row, reason in await explained(engine) if reason is Reason.ABOUT_TO_START]
    return Said(sum(not row.job_open for row in starting), sum(row.job_open for row in starting))


async def by_the_gate(engine: Engine, connection: Any) -> Said:
    """Whoever asks by name for all that waits is given so many."""
    rows = await engine.pool.fetch("SELECT task_id FROM tasks WHERE status IN ('queued', 'retrying')")
    claims = [Claim(row["task_id"], uuid4()) for row in rows]
    answers = await tasks.claim(connection, "worker-1", claims, 30)
    granted = [answer for answer in answers if isinstance(answer, Claimed)]
    return Said(sum(not each.job_open for each in granted), sum(each.job_open for each in granted))


async def by_the_demand(engine: Engine) -> int:
    wanted: int = await engine.pool.fetchval("SELECT sum(wanted)::int FROM scale_demand")
    return wanted - await engine.count("status = 'running'")


async def bring_about(engine: Engine, situation: dict[str, str]) -> None:
    await engine.pool.execute(f"DELETE FROM tasks; DELETE FROM task_events; DELETE FROM actors; {CLEAR}")
    await serve(engine, capacity=2 * WAITING)
    await engine.submit_many(WAITING)
    await engine.pool.execute("; ".join(situation.values()))


async def agree(engine: Engine, situation: dict[str, str]) -> None:
    await bring_about(engine, situation)
    before = await explained(engine)
    full = {row.task_id for row, reason in before if reason is Reason.KEY_LIMIT}
    wanted, told = await by_the_demand(engine), await by_why(engine)
    async with engine.pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        named = await by_the_gate(engine, connection)
        await transaction.rollback()
    granted, which = await by_the_next(engine)
    assert wanted == granted.starts + granted.resumes, "the demand for pods"
    assert told == granted, "why"
    assert not which & full, "why, before it was parked"
    if not full:
        assert named == granted, "the claim by name"


def test_the_claims_why_and_the_demand_for_pods_agree(servers: Servers, migrated_template: str) -> None:
    for_examples(empty_database(servers.database_url, migrated_template), situations, agree, number=100)

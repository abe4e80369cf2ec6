"""What may start, said three times: the claim's gate, admission and the demand for pods agree in every situation.

Whatever may keep a task from starting is a dimension: a strategy for the statement that brings it about. A new one is
another entry.
"""

from dataclasses import dataclass

from hypothesis import strategies as st

from tests.support.engine.examples import for_examples
from tests.support.engine.flow import look
from tests.support.engine.rated import claim_together
from tests.support.engine.store import Engine, empty_database
from tests.support.servers.private_servers import Servers
from windlass.shared.admission import WINDOW_FLOOR, admit

WAITING = WINDOW_FLOOR // 2
"""Fewer than the window of doorbells has room for: it grows with the pool, which must not depend on it."""

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


def rate(limit: int, taken: list[tuple[int, int]]) -> str:
    """So many were taken so many seconds ago; after 21 they count no longer."""
    moments = ", ".join(f"clock_timestamp() - interval '{ago} s'" for ago, _ in taken)
    counts = ", ".join(str(places) for _, places in taken)
    return provider_with(
        f'configured_rate = \'{{"limit": {limit}, "per_seconds": 20}}\', '
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

DIMENSIONS = {
    "running": st.integers(0, 3).map(
        lambda number: tasks_with(
            "status = 'running', claim_token = gen_random_uuid(), lease_expires_at = now() + interval '1 h', "
            "attempt = 1, started_at = now(), worker_id = 'worker-1'",
            number,
        )
    ),
    "open jobs": st.integers(0, 2).map(lambda number: tasks_with("job_open = true", number)),
    "retries": st.integers(0, 3).map(lambda number: tasks_with("lane = 'retry', status = 'retrying'", number)),
    "limit": nothing | st.integers(0, 2 * WAITING).map(lambda limit: provider_with(f"configured_limit = {limit}")),
    "rate": nothing
    | st.builds(
        rate,
        st.integers(0, WAITING),
        st.lists(st.tuples(st.sampled_from([0, 5, 15, 19, 23, 60]), st.integers(1, 4)), max_size=4),
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


async def by_admission(engine: Engine) -> Said:
    admission = admit(await look(engine))
    return Said(admission.fresh + admission.retry, admission.resumes)


async def by_the_gate(engine: Engine) -> Said:
    """Whoever asks for all that waits is given so many."""
    rows = await engine.pool.fetch("SELECT task_id FROM tasks WHERE status IN ('queued', 'retrying')")
    granted = await claim_together(engine, [row["task_id"] for row in rows])
    return Said(sum(not each.job_open for each in granted), sum(each.job_open for each in granted))


async def by_the_demand(engine: Engine) -> int:
    wanted: int = await engine.pool.fetchval("SELECT sum(wanted)::int FROM scale_demand")
    return wanted - await engine.count("status = 'running'")


async def bring_about(engine: Engine, situation: dict[str, str]) -> None:
    await engine.pool.execute(f"DELETE FROM tasks; DELETE FROM task_events; {CLEAR}")
    await engine.submit_many(WAITING)
    await engine.pool.execute("; ".join(situation.values()))


async def agree(engine: Engine, situation: dict[str, str]) -> None:
    await bring_about(engine, situation)
    admitted = await by_admission(engine)
    assert await by_the_demand(engine) == admitted.starts + admitted.resumes, "the demand for pods"
    assert await by_the_gate(engine) == admitted, "the claim's gate"


def test_the_gate_admission_and_the_demand_for_pods_agree(servers: Servers, migrated_template: str) -> None:
    for_examples(empty_database(servers.database_url, migrated_template), situations, agree, number=100)

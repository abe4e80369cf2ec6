"""Very many tasks while somebody holds a snapshot open, as a nightly dump does: what a claim costs from first to last.

Nothing that has ended since can be cleared away, so whoever walks over it pays for all of it.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import asyncpg

from bench.deployment import new_database
from bench.figures import Figure, told
from bench.hot_path import STEPS, HotPath, Round, a_hot_path, cpu_of_a_start, middle
from tests.support.servers.databases import execute
from tests.support.servers.private_servers import throw_away_servers

TASKS = int(os.environ.get("SNAPSHOT", "200000"))
AT_ONCE = 2000
"""Pass through in one round between two measurements: it is their number that counts, not their time."""
MEASURED_AT = 10
"""So often on the way."""
CAPACITY = 32
"""Of the worker: twice as many go in a measured round."""
ROUNDS = 7
LONGEST_SECONDS = float(os.environ.get("SNAPSHOT_SECONDS", "240"))
"""Then it stops, and says how far it came."""
AIM = 2.0

PROVIDER = """
INSERT INTO providers (name, actor, configured_limit) VALUES ('probe', 'probe', NULL) ON CONFLICT (name) DO NOTHING;
INSERT INTO queues (queue, provider, actor) VALUES ('probe.probe', 'probe', 'probe') ON CONFLICT (queue) DO NOTHING
"""


@asynccontextmanager
async def an_open_snapshot(url: str) -> AsyncIterator[None]:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("SET idle_in_transaction_session_timeout = 0")
        async with connection.transaction(isolation="repeatable_read"):
            await connection.fetchval("SELECT count(*) FROM tasks")
            yield
    finally:
        await connection.close()


async def measured(path: HotPath) -> tuple[Round, int]:
    """The median of a few rounds, and how many tasks they took."""
    rounds, taken = [], 0
    for _ in range(ROUNDS):
        await path.submit(2 * CAPACITY)
        costs, number = await path.round()
        rounds.append(costs)
        taken += number
    return middle(rounds), taken


async def walk(url: str) -> dict[int, Round]:
    """What the calls cost after so many tasks."""
    costs: dict[int, Round] = {}
    began = time.monotonic()
    async with an_open_snapshot(url), a_hot_path(url, "probe", capacity=CAPACITY) as path:
        await path.submit(AT_ONCE)
        await path.round(AT_ONCE)  # what is planned and read for the first time is nobody's cost
        passed = AT_ONCE
        costs[0], taken = await measured(path)
        passed += taken
        while passed < TASKS and time.monotonic() - began < LONGEST_SECONDS:
            until = min(TASKS, passed + TASKS // MEASURED_AT)
            while passed < until and time.monotonic() - began < LONGEST_SECONDS:
                await path.submit(AT_ONCE)
                _, taken = await path.round(AT_ONCE)
                passed += taken
            costs[passed], taken = await measured(path)
            passed += taken
    return costs


def of_the_walk(costs: Mapping[int, Round]) -> list[Figure]:
    """The first and the last, and whether it came to its end at all."""
    passed = max(costs)
    done = passed >= TASKS
    so_far = "" if done else f", stopped there after {LONGEST_SECONDS:.0f} s"
    shares = {at: cpu_of_a_start(each) for at, each in costs.items()}
    return [
        _grown("look and claim together", shares, so_far, aimed=True, done=done),
        *(
            _grown(
                step, {at: each[step].cpu_ms for at, each in costs.items()}, so_far, aimed=step == "claim", done=done
            )
            for step in STEPS
        ),
        Figure(
            f"time of all four calls for {2 * CAPACITY} tasks",
            f"{_all_ms(costs[0]):.1f} ms at first, {_all_ms(costs[passed]):.1f} ms after {passed:,}",
            "",
            {"first_ms": _all_ms(costs[0]), "last_ms": _all_ms(costs[passed])},
        ),
    ]


def _grown(name: str, by_number: Mapping[int, float], so_far: str, *, aimed: bool, done: bool) -> Figure:
    passed = max(by_number)
    first, last = by_number[0], by_number[passed]
    return Figure(
        f"{name} of {2 * CAPACITY}, CPU of Postgres",
        f"{told(first)} ms at first, {told(last)} ms after {passed:,} = {last / first:.1f} x{so_far}",
        f"<= {AIM:g} x after {TASKS:,}" if aimed else "",
        {"ratio": last / first, **{f"after_{number}_ms": cost for number, cost in by_number.items()}},
        reached=(done and last <= AIM * first) if aimed else None,
    )


def _all_ms(costs: Round) -> float:
    return sum(each.ms for each in costs.values())


def figures() -> list[Figure]:
    with throw_away_servers() as servers:
        url = new_database(servers, "snapshot")
        execute(url, PROVIDER)
        return of_the_walk(asyncio.run(walk(url)))

"""What is asked beside the hot path while a million tasks wait: the api's reads, `scale_demand` and the sweeps."""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg

from bench import families
from bench.deployment import START_SECONDS, THREADS, a_windlass, new_database
from bench.figures import Figure
from bench.hot_path import STEPS, Round, a_hot_path, middle
from bench.peers import starts
from bench.peers.starts import Latency
from bench.waiting_tasks import Waiting, fill
from tests.support.installation import Windlass, answers
from tests.support.servers.databases import ask
from tests.support.servers.private_servers import Servers, throw_away_servers
from tests.support.waiting import wait_until
from windlass.shared import db
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.operating import queues, reconciliation
from windlass.shared.store.tasks import dependencies

BIG = Waiting(
    queued=int(os.environ.get("BACKLOG", "1000000")),
    scheduled=int(os.environ.get("SCHEDULED", "400000")),
    blocked=int(os.environ.get("BLOCKED", "200000")),
    retrying=2_000,
)
FEW = Waiting(queued=3_000, scheduled=0, blocked=0, retrying=0)
ROUNDS = 9
HOT_ROUNDS = 25
SAMPLES = 40
AIM_MS = 50.0
AIM_COUNTED_MS = 100.0
"""Of what is counted row by row, and believed for a second: a tenth of a core, whoever asks."""
AIM_RATIO = 1.2
"""Of the hot path, with very many against with few."""

CONFIGURED = """
[providers.probe]
actor = "probe"
limit = 3

[providers.other]
actor = "probe"
"""

READS: Mapping[str, str] = {
    "/queues/status": "/api/v1/queues/status",
    "/tasks": "/api/v1/tasks",
    "/tasks?status=queued": "/api/v1/tasks?status=queued",
    "/tasks?status=blocked": "/api/v1/tasks?status=blocked",
    "/tasks?status=retrying": "/api/v1/tasks?status=retrying",
    "/tasks?status=running": "/api/v1/tasks?status=running",
    "/tasks?provider=, of the backlog": "/api/v1/tasks?provider=probe",
    "/tasks?provider=, of an idle one": "/api/v1/tasks?provider=midjourney",
    "/tasks?user_id=": "/api/v1/tasks?user_id=user-7",
    "/tasks?user_id=, without tasks": "/api/v1/tasks?user_id=nobody",
    "/tasks?lane=retry": "/api/v1/tasks?lane=retry",
    "/tasks?project_id=, unknown": "/api/v1/tasks?project_id=none",
    "/tasks?workflow_id=, unknown": "/api/v1/tasks?workflow_id=none",
    "/tasks?tag=, unknown": "/api/v1/tasks?tag=none",
    "/tasks?error_type=, unknown": "/api/v1/tasks?error_type=None",
    "/tasks?provider=&status=blocked, of an idle one": "/api/v1/tasks?provider=midjourney&status=blocked",
    "/tasks?actor=, idle": "/api/v1/tasks?actor=embed",
    "/tasks?actor=&status=queued, idle": "/api/v1/tasks?actor=embed&status=queued",
    "/tasks?q=, nowhere": "/api/v1/tasks?q=xylophone",
    "/tasks/{id}, the last": "/api/v1/tasks/{last}",
    "/tasks/{id}/why, the first": "/api/v1/tasks/{first}/why",
    "/tasks/{id}/why, the last": "/api/v1/tasks/{last}/why",
    "/queues/dlq": "/api/v1/queues/dlq",
    "/queues/dlq?group_by=error": "/api/v1/queues/dlq?group_by=error",
    "/providers": "/api/v1/providers",
    "/workers": "/api/v1/workers",
    "/stats": "/api/v1/stats",
    "/health": "/health",
    "/metrics": "/metrics",
}

NOT_AIMED_AT = {"/tasks?q=, nowhere"}
"""Without an index of what lives: that would be paid for by every move of every task."""


def a_figure(name: str, seconds: list[float], aim: float | None = AIM_MS) -> Figure:
    """By the best round as well: others on the machine make every one of them longer, never shorter."""
    middle, best = statistics.median(seconds) * 1000, min(seconds) * 1000
    return Figure(
        name,
        f"{middle:.1f} ms (best of {len(seconds)}: {best:.1f})",
        "" if aim is None else f"< {aim:.0f} ms",
        {"ms": middle, "best_ms": best},
        reached=None if aim is None else middle < aim,
    )


def reads(windlass: Windlass, url: str) -> list[Figure]:
    first, last = (
        str(ask(url, f"SELECT task_id FROM tasks WHERE status = 'queued' ORDER BY task_id {order} LIMIT 1")[0][0])
        for order in ("ASC", "DESC")
    )
    found = []
    for name, path in READS.items():
        seconds = []
        for _ in range(ROUNDS + 1):  # the first one plans, and opens connections
            began = time.perf_counter()
            answer = windlass.client.http.get(path.format(first=first, last=last))
            seconds.append(time.perf_counter() - began)
            assert answer.status_code == 200, f"{path}: {answer.text}"
        found.append(a_figure(f"GET {name}", seconds[1:], None if name in NOT_AIMED_AT else AIM_MS))
    return found


async def timed(question: Callable[[], Awaitable[Any]], rounds: int = ROUNDS) -> list[float]:
    await question()
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        await question()
        seconds.append(time.perf_counter() - began)
    return seconds


async def sweeps(url: str) -> list[Figure]:
    settings = Settings(database_url=url)
    pool = await db.open_pool(settings, "bench", most=1)
    autoscaler = await asyncpg.connect(url)  # with the server's own settings, as KEDA has
    try:
        questions: Mapping[str, Callable[[], Awaitable[Any]]] = {
            "view scale_demand": lambda: autoscaler.fetch("SELECT * FROM scale_demand"),
            "/queues/status of a user without tasks": lambda: queues.status(
                pool, user_id="nobody", heard_within_seconds=30
            ),
            "sweep, expired": lambda: tasks.expire(pool),
            "sweep, stale": lambda: tasks.stall(pool),
            "sweep, a page of the blocked": lambda: dependencies.recheck(pool),
            "sweep, dependents left": lambda: dependencies.settle_next(pool),
            "sweep, unaccounted": lambda: reconciliation.count_unaccounted(
                pool, after_seconds=90, heard_within_seconds=30
            ),
            "sweep, tallies folded": lambda: queues.fold_tallies(pool),
        }
        found = [a_figure(name, await timed(question)) for name, question in questions.items()]
        for whose, user_id in (("everybody's", None), ("those of a user with one in forty", "user-7")):
            counted = await timed(partial(queues.status, pool, user_id=user_id, heard_within_seconds=30))
            found.append(a_figure(f"at most once a second, what waits counted anew: {whose}", counted, AIM_COUNTED_MS))
        found.append(
            a_figure(
                "each hour, counts compared with all that lives",
                await timed(lambda: queues.mend_tallies(pool), rounds=3),
                None,
            )
        )
        found.append(await all_of_the_blocked(pool))
        await pool.execute("UPDATE providers SET configured_limit = NULL")
        found += await families.many_small(pool, settings)
        return [*found, *await families.a_large_one(pool, settings)]
    finally:
        await autoscaler.close()
        await pool.close()


async def all_of_the_blocked(pool: asyncpg.Pool) -> Figure:
    """The janitor's whole sweep, page by page."""
    seconds: list[float] = []
    reached = None
    while True:
        began = time.perf_counter()
        reached, _ = await dependencies.recheck(pool, reached)
        seconds.append(time.perf_counter() - began)
        if reached is None:
            break
    longest = max(seconds) * 1000
    return Figure(
        f"sweep, all of the {BIG.blocked:,} blocked",
        f"{sum(seconds):.2f} s, the longest of {len(seconds)} pages {longest:.1f} ms",
        f"no page of {AIM_MS:.0f} ms",
        {"seconds": sum(seconds), "longest_page_ms": longest},
        reached=longest < AIM_MS,
    )


async def hot_paths(few: str, very_many: str) -> tuple[Round, Round]:
    """In turns, so that a busy moment of the machine hits both alike."""
    async with (
        a_hot_path(few, "probe", capacity=THREADS) as one,
        a_hot_path(very_many, "probe", capacity=THREADS) as other,
    ):
        rounds = [((await one.round())[0], (await other.round())[0]) for _ in range(HOT_ROUNDS + 1)]
    first, second = zip(*rounds[1:], strict=True)
    return middle(first), middle(second)


def of_the_hot_path(few: Round, very_many: Round) -> list[Figure]:
    """At limit 3: CPU of Postgres, with few waiting and with very many."""
    found = []
    for step in (*STEPS, "all four"):
        at_first, at_last = (
            sum(each.cpu_ms for each in costs.values()) if step == "all four" else costs[step].cpu_ms
            for costs in (few, very_many)
        )
        aim = AIM_RATIO if step == "all four" else None
        found.append(
            Figure(
                f"{step}, of three, CPU of Postgres",
                f"{at_first:.2f} ms with {FEW.queued:,} queued, {at_last:.2f} ms = {at_last / at_first:.2f} x",
                "" if aim is None else f"<= {aim} x",
                {"few_ms": at_first, "ms": at_last, "ratio": at_last / at_first},
                reached=None if aim is None else at_last <= aim * at_first,
            )
        )
    return found


def of_the_size(waiting: Waiting) -> Figure:
    numbers = {kind: getattr(waiting, kind) for kind in ("queued", "scheduled", "blocked", "retrying")}
    return Figure("waiting", ", ".join(f"{number:,} {kind}" for kind, number in numbers.items()), "", numbers)


def of_a_fresh_task(latency: Latency) -> Figure:
    return Figure(
        "fresh task of another provider, from before the request to the first line of the actor",
        f"{latency.p50 * 1000:.1f} ms median, {latency.p99 * 1000:.1f} ms p99",
        f"< {AIM_MS:.0f} ms",
        {"p50_ms": latency.p50 * 1000, "p99_ms": latency.p99 * 1000},
        reached=latency.p50 * 1000 < AIM_MS,
    )


def measure(servers: Servers, directory: Path) -> list[Figure]:
    few, url = (new_database(servers, name) for name in ("few", "backlog"))
    asyncio.run(fill(few, FEW))
    asyncio.run(fill(url, BIG))
    costs = asyncio.run(hot_paths(few, url))
    config = directory / "windlass.toml"
    config.write_text(CONFIGURED)
    with a_windlass(url, servers, directory, WINDLASS_CONFIG=str(config)) as windlass:
        windlass.api = windlass.start("api")
        wait_until("it answers", lambda: answers(windlass.client), seconds=START_SECONDS, every=0.2)
        found = reads(windlass, url)
        windlass.start("dispatcher")
        windlass.start(starts.NOTING)
        wait_until("a worker", windlass.client.workers, seconds=START_SECONDS, every=0.2)
        starts.one_by_one(windlass, starts.WARM_UP, provider="other")
        found.append(of_a_fresh_task(starts.one_by_one(windlass, SAMPLES, provider="other")))
    return [of_the_size(BIG), *of_the_hot_path(*costs), *found, *asyncio.run(sweeps(url))]


def figures() -> list[Figure]:
    with throw_away_servers() as servers, tempfile.TemporaryDirectory() as directory:
        return measure(servers, Path(directory))

"""What is asked beside the hot path while a million tasks wait: the api's reads, `scale_demand` and the sweeps."""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import asyncpg

from bench.deployment import START_SECONDS, a_windlass, new_database
from bench.figures import Figure
from tests.support.installation import Windlass, answers
from tests.support.servers.databases import ask, execute
from tests.support.servers.private_servers import Servers, throw_away_servers
from tests.support.waiting import wait_until
from windlass.shared import db
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.flow_control.flow import Rules
from windlass.shared.store.functions import named
from windlass.shared.store.operating import queues, reconciliation
from windlass.shared.store.tasks import Claim, Claimed, Ending, dependencies

WAITING = int(os.environ.get("BACKLOG", "1000000"))
SCHEDULED, BLOCKED, RETRYING, DEPENDENTS = 20_000, 20_000, 2_000, 10_000
ROUNDS = 9
AIM_MS = 50.0

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
    "/tasks?actor=, idle": "/api/v1/tasks?actor=embed",
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

NOT_AIMED_AT = {"/tasks?actor=, idle", "/tasks?q=, nowhere"}
"""Without an index of what lives: that would be paid for by every move of every task."""

TASKS = """
INSERT INTO tasks (
    task_id, actor, provider, status, lane, unmet, payload, timeout_seconds, available_at, created_at, updated_at,
    user_id, max_age_seconds, expires_at)
SELECT (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint - 2000000 + n), 12, '0') || '7'
        || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid,
       'probe', 'probe', kind.status, CASE kind.status WHEN 'retrying' THEN 'retry' ELSE 'fresh' END,
       (kind.status = 'blocked')::int, '{"outcome": "ok"}', 120,
       now() - interval '1 h' + CASE WHEN kind.later THEN interval '1 day' ELSE n * interval '1 ms' END, now(), now(),
       'user-' || n % 40, CASE WHEN n % 2 = 0 THEN 864000 END, CASE WHEN n % 2 = 0 THEN now() + interval '10 days' END
FROM generate_series(1, $1::int + $2 + $3 + $4) AS n
CROSS JOIN LATERAL (
    SELECT CASE WHEN n > $1 + $2 + $3 THEN 'retrying' WHEN n > $1 + $2 THEN 'blocked' ELSE 'queued' END AS status,
           n > $1 AND n <= $1 + $2 AS later
) AS kind
"""

EDGES = """
INSERT INTO task_dependencies (parent_id, child_id)
SELECT parents.ids[1 + numbered.n % 200], numbered.task_id
FROM (
    SELECT array_agg(task_id) AS ids FROM (SELECT task_id FROM tasks WHERE status = 'queued' LIMIT 200) AS p
) AS parents, (SELECT task_id, row_number() OVER ()::int AS n FROM tasks WHERE status = 'blocked') AS numbered
"""

PROVIDERS = """
INSERT INTO providers (name, actor, configured_limit)
VALUES ('probe', 'probe', 3), ('midjourney', 'media', 3), ('openrouter', 'summarize', 20), ('local', 'agent', NULL)
ON CONFLICT (name) DO UPDATE SET configured_limit = excluded.configured_limit;

INSERT INTO queues (queue, provider, actor) SELECT actor || '.' || name, name, actor FROM providers
ON CONFLICT (queue) DO NOTHING
"""

INDEXES = """
SELECT indexname AS name, indexdef AS definition FROM pg_indexes WHERE tablename = 'tasks' AND indexname <> 'tasks_pkey'
"""


async def fill(url: str) -> None:
    """The indexes are made afterwards: the result is the same, and it takes a quarter of the time."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("SET synchronous_commit = off; SET maintenance_work_mem = '256MB'")
        indexes = await connection.fetch(INDEXES)
        for index in indexes:
            await connection.execute(f"DROP INDEX {index['name']}")
        await connection.execute(PROVIDERS)
        await connection.execute(TASKS, WAITING, SCHEDULED, BLOCKED, RETRYING)
        for index in indexes:
            await connection.execute(index["definition"])
        await connection.execute(EDGES)
        await connection.execute(f"SELECT {named('mend_tallies')}()")
        await connection.execute("VACUUM (ANALYZE) tasks")
    finally:
        await connection.close()


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
            "/queues/status of a user with one in forty": lambda: queues.status(
                pool, user_id="user-7", heard_within_seconds=30
            ),
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
        found.append(
            a_figure(
                "each hour, counts compared with all that lives",
                await timed(lambda: queues.mend_tallies(pool), rounds=3),
                None,
            )
        )
        return [*found, *await a_large_family(pool, settings)]
    finally:
        await autoscaler.close()
        await pool.close()


async def a_large_family(pool: asyncpg.Pool, settings: Settings) -> list[Figure]:
    """A parent dies: how long its own end takes, and how long until the last of its dependents has been buried."""
    parent = await pool.fetchval(
        "SELECT task_id FROM tasks WHERE status = 'queued' AND available_at < now() ORDER BY task_id DESC LIMIT 1"
    )
    await pool.execute(
        """
        INSERT INTO task_dependencies (parent_id, child_id)
        SELECT $1, task_id FROM tasks WHERE status = 'blocked' ORDER BY task_id LIMIT $2
        """,
        parent,
        DEPENDENTS,
    )
    (attempt,) = await tasks.claim(pool, "bench", [Claim(parent, parent)], 30)
    assert isinstance(attempt, Claimed), attempt
    error = {"type": "ContentRejected", "kind": "permanent", "message": "no", "details": {}, "attempt": 1}
    ending = Ending(parent, attempt.attempt, attempt.claim_token, "bury", error=error)
    began = time.perf_counter()
    assert await tasks.end(pool, [ending], Rules.of(settings)) == ["dead"]
    ended = time.perf_counter() - began
    pages = []
    began = time.perf_counter()
    while await dependencies.settle_next(pool):
        pages.append(time.perf_counter() - began)
        began = time.perf_counter()
    buried = await pool.fetchval("SELECT count(*) FROM tasks WHERE status = 'dead'")
    assert buried == DEPENDENTS + 1, buried
    return [
        a_figure(f"end of a parent with {DEPENDENTS:,} dependents", [ended]),
        Figure(
            "all of them buried",
            f"{sum(pages):.2f} s, the longest page {max(pages) * 1000:.0f} ms",
            "< 5 s",
            {"seconds": sum(pages), "longest_page_ms": max(pages) * 1000},
            reached=sum(pages) < 5,
        ),
    ]


def measure(servers: Servers, directory: Path) -> list[Figure]:
    url = new_database(servers, "backlog")
    asyncio.run(fill(url))
    with a_windlass(url, servers, directory) as windlass:
        windlass.start("api")
        wait_until("it answers", lambda: answers(windlass.client), seconds=START_SECONDS, every=0.2)
        execute(url, PROVIDERS)
        found = reads(windlass, url)
    return [*found, *asyncio.run(sweeps(url))]


def figures() -> list[Figure]:
    with throw_away_servers() as servers, tempfile.TemporaryDirectory() as directory:
        return measure(servers, Path(directory))

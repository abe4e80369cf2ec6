"""Workflows: what a task of a wide one takes against a plain one, and a page of them with a long history."""

import asyncio
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg

from bench.deployment import a_windlass, cpu_seconds_with_children, new_database, start_all
from bench.figures import Figure
from tests.support.installation import Windlass
from tests.support.servers.databases import ask
from tests.support.servers.private_servers import Servers, throw_away_servers
from tests.support.waiting import wait_until
from windlass.shared import db
from windlass.shared.settings import Settings
from windlass.shared.store.workflows import reading
from windlass.shared.store.workflows.reading import Wanted
from windlass.shared.workflow_states import WorkflowStatus

TASKS = int(os.environ.get("NODES", "1000"))
"""Of a workflow, with its first and its last."""
ROUNDS = int(os.environ.get("ROUNDS", "15"))
"""With five the median of the ratios was 1.15 to 1.48 in three runs of the same code on one machine."""
SHORT = int(os.environ.get("SHORT", "1000"))
LONG = int(os.environ.get("LONG", "100000"))
REPEATS = 40
PAGE = 51
OF_PLAIN = 1.3
OF_SHORT = 1.5
DRAIN_SECONDS = 300
SETTLE_SECONDS = 1.0

NO_OP = {"actor": "probe", "payload": {"seconds": 0}}
LIVING = """
SELECT (SELECT count(*) FROM tasks WHERE status NOT IN ('completed', 'dead', 'cancelled'))
     + (SELECT count(*) FROM outbox)
"""
COMPLETED = "SELECT count(*) FROM tasks WHERE status = 'completed'"

HISTORY = """
INSERT INTO workflows (
    workflow_id, user_id, name, tags, failure_threshold, failures, total, live, completed, dead, cancelled,
    cancel_requested, last_seq, created_at, updated_at, completed_at)
SELECT (lpad(to_hex((extract(epoch FROM made.at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3)
        || '8' || substr(md5(n::text), 4, 15))::uuid,
       'user-' || n % 40, 'report ' || n % 200, CASE WHEN n % 3 = 0 THEN ARRAY['nightly'] ELSE '{}' END, NULL, 0,
       20, 0, CASE n % 10 WHEN 0 THEN 19 WHEN 1 THEN 19 ELSE 20 END, (n % 10 = 0)::int, (n % 10 = 1)::int, false, 2,
       made.at, made.at, made.at
FROM generate_series(1, $1::int) AS n
CROSS JOIN LATERAL (SELECT now() - ($1::int - n + 1) * interval '30 s' AS at) AS made
"""
A_DAY_AGO = datetime.now(UTC) - timedelta(days=1)
PAGES = {
    "everything": Wanted(),
    "completed": Wanted(status=[WorkflowStatus.COMPLETED]),
    "failed or cancelled": Wanted(status=[WorkflowStatus.FAILED, WorkflowStatus.CANCELLED]),
    "escalated, of which there are none": Wanted(status=[WorkflowStatus.ESCALATED]),
    "a user's": Wanted(user_id="user-7"),
    "a user's that failed": Wanted(user_id="user-10", status=[WorkflowStatus.FAILED]),
    "of a name": Wanted(name="report 17"),
    "with a tag": Wanted(tag=["nightly"]),
    "created in the last day": Wanted(created_after=A_DAY_AGO),
    "created before the last day": Wanted(created_before=datetime.now(UTC) - timedelta(hours=2)),
}


class Wide:
    """A running Windlass, and the CPU time that so many no-ops take: submitted, run, and their ends handled."""

    def __init__(self, windlass: Windlass, servers: Servers) -> None:
        self._client = windlass.client
        self._url = windlass.environment["WINDLASS_DATABASE_URL"]
        ours = (windlass.api, windlass.dispatcher, windlass.actors, windlass.janitor, windlass.orchestrator)
        self._pids = [*(process.pid for process in ours), servers.postgres_pid, servers.rabbitmq_pid]

    def plain(self) -> None:
        self._client.submit_many([NO_OP] * TASKS)

    def fan(self) -> None:
        """One, all the others after it, and one after all of them."""
        middle = [{**NO_OP, "key": f"t{number}", "depends_on": ["first"]} for number in range(TASKS - 2)]
        last = {**NO_OP, "key": "last", "depends_on": [task["key"] for task in middle]}
        self._submit([{**NO_OP, "key": "first"}, *middle, last])

    def for_each(self) -> None:
        """The same by a list; the last gets what all of them returned."""
        each = {"seconds": 0, "result": {"$item": True}}
        self._submit(
            [
                {"key": "first", "actor": "probe", "payload": {"seconds": 0, "result": list(range(TASKS - 2))}},
                {"key": "all", "actor": "probe", "payload": each, "for_each": {"$from": "first", "path": "/echo"}},
                {"key": "last", "actor": "probe", "payload": {"seconds": 0, "result": {"$from": "all"}},
                 "depends_on": ["all"]},
            ]
        )  # fmt: skip

    def milliseconds(self, submit: Callable[[], None]) -> float:
        """Of CPU for each task, over all processes and servers."""
        done = self._count(COMPLETED)
        before = self._spent()
        submit()
        wait_until("all done", lambda: self._count(COMPLETED) == done + TASKS, seconds=DRAIN_SECONDS, every=0.3)
        wait_until("nothing left", lambda: self._count(LIVING) == 0, seconds=DRAIN_SECONDS)
        spent = self._spent() - before
        time.sleep(SETTLE_SECONDS)
        return 1000 * spent / TASKS

    def _submit(self, tasks: list[dict[str, Any]]) -> None:
        self._client.http.post("/api/v1/workflows", json={"name": "bench", "tasks": tasks}).raise_for_status()

    def _spent(self) -> float:
        return sum(map(cpu_seconds_with_children, self._pids))

    def _count(self, query: str) -> int:
        return int(ask(self._url, query)[0][0])


def wide_ones(servers: Servers) -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        url = new_database(servers, "workflows")
        with a_windlass(url, servers, Path(directory)) as windlass:
            start_all(windlass)
            wait_until("a worker", windlass.client.workers)
            wide = Wide(windlass, servers)
            ways = {"plain": wide.plain, "fan": wide.fan, "for_each": wide.for_each}
            for submit in ways.values():  # the first of each kind is prepared for, and measured by nobody
                wide.milliseconds(submit)
            rounds = [{name: wide.milliseconds(submit) for name, submit in ways.items()} for _ in range(ROUNDS)]
    return of_rounds(rounds)


def of_rounds(rounds: Sequence[dict[str, float]]) -> list[Figure]:
    """The ratio is the median of each round's own."""
    plain = statistics.median(each["plain"] for each in rounds)
    found = [
        Figure(
            f"CPU of {TASKS:,} plain no-ops, for each, all processes and servers together",
            f"{plain:.2f} ms, median of {len(rounds)} rounds",
            "the measure",
            {"ms": plain},
            label="plain",
        )
    ]
    for name, words in (("fan", "by edges"), ("for_each", "by a list, with all results joined")):
        spent = statistics.median(each[name] for each in rounds)
        times = statistics.median(each[name] / each["plain"] for each in rounds)
        found.append(
            Figure(
                f"the same as a fan-out and its join, {words}",
                f"{spent:.2f} ms = {times:.2f} x a plain one",
                f"<= {OF_PLAIN:g} x",
                {"ms": spent, "ratio": times},
                reached=times <= OF_PLAIN,
                label=words,
            )
        )
    return found


class History:
    """A database with so many finished workflows, as an api reads it."""

    def __init__(self, lists: asyncpg.Pool) -> None:
        self._lists = lists
        self._seconds: dict[str, list[float]] = defaultdict(list)

    @classmethod
    async def of(cls, database_url: str, workflows: int) -> "History":
        connection = await asyncpg.connect(database_url)
        await connection.execute(HISTORY, workflows)
        await connection.execute("VACUUM ANALYZE workflows")
        await connection.close()
        return cls(await db.open_reading_pool(Settings(database_url=database_url), "bench", most=1))

    async def measure(self, name: str) -> None:
        began = time.perf_counter()
        await reading.newest(self._lists, PAGES[name], owner=None, before=None, limit=PAGE)
        self._seconds[name].append(time.perf_counter() - began)

    def median(self, name: str) -> float:
        return statistics.median(self._seconds[name])

    async def close(self) -> None:
        await self._lists.close()


async def pages(urls: dict[int, str]) -> list[Figure]:
    short, long = [await History.of(url, workflows) for workflows, url in urls.items()]
    for name in PAGES:
        for _ in range(REPEATS):  # by turns, so that whatever else the machine does slows down both
            await short.measure(name)
            await long.measure(name)
    await short.close()
    await long.close()
    return [of_a_page(name, short.median(name), long.median(name)) for name in PAGES]


def of_a_page(name: str, short: float, long: float) -> Figure:
    return Figure(
        f"a page of workflows at {LONG:,} finished ones: {name}",
        f"{long * 1000:.2f} ms = {long / short:.2f} x",
        f"<= {OF_SHORT:g} x that at {SHORT:,}",
        {"ms": long * 1000, "short_ms": short * 1000, "ratio": long / short},
        reached=long <= OF_SHORT * short,
    )


def figures() -> list[Figure]:
    with throw_away_servers() as servers:
        found = wide_ones(servers)
        urls = {workflows: new_database(servers, f"workflows_{workflows}") for workflows in (SHORT, LONG)}
        return [*found, *asyncio.run(pages(urls))]

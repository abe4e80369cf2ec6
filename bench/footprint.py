"""What Windlass takes: bytes and WAL of a task, memory of every process, and what it does while nothing happens."""

import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from bench.deployment import a_windlass, cpu_seconds, new_database, proportional_bytes, start_all
from bench.figures import Figure
from bench.statement_log import Asked, asked_within
from tests.support.installation import Windlass
from tests.support.servers.databases import ask, execute
from tests.support.servers.private_servers import new_directory, running_servers
from tests.support.waiting import wait_until
from windlass.shared.process.procfs import descendants

TASKS = int(os.environ.get("TASKS", "3000"))
IDLE_SECONDS = int(os.environ.get("IDLE_SECONDS", "120"))
"""Whole minutes: some duties come once in each."""
SETTLE_SECONDS = 20
AIM_PER_SECOND = 0.5
MEGABYTE = 1024 * 1024

OWNERS = {"api": "api", "dispatcher": "dispatcher", "janitor": "janitor", "heartbeat": "worker", "actors": "worker"}
"""Which process a connection belongs to, by the second word of the name that it gives itself."""


def figures() -> list[Figure]:
    directory = new_directory()
    try:
        with running_servers(directory) as servers, tempfile.TemporaryDirectory() as place:
            url = new_database(servers, "footprint")
            with a_windlass(url, servers, Path(place)) as windlass:
                start_all(windlass)
                return measure(windlass, url, directory / "servers.log")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def measure(windlass: Windlass, url: str, log: Path) -> list[Figure]:
    pids = processes(windlass)
    time.sleep(SETTLE_SECONDS)
    memory = {name: proportional_bytes(pid) for name, pid in pids.items()}
    before, began = {name: cpu_seconds(pid) for name, pid in pids.items()}, time.monotonic()
    asked = asked_within(IDLE_SECONDS, url, log)
    passed = time.monotonic() - began
    shares = {name: (cpu_seconds(pid) - before[name]) / passed for name, pid in pids.items()}
    bytes_per_task = grow(windlass, url)
    used = {name: proportional_bytes(pid) for name, pid in pids.items()}
    return [*what_a_task_takes(bytes_per_task), *what_processes_hold(memory, used), *what_idleness_costs(asked, shares)]


def processes(windlass: Windlass) -> dict[str, int]:
    """Every process of one small deployment; the worker is its guardian's child, the schedule the janitor's."""
    worker = wait_until("a worker", windlass.client.workers)[0]["pid"]
    schedule = wait_until("the schedule", lambda: descendants(windlass.janitor.pid))[0].pid
    return {
        "api": windlass.api.pid,
        "dispatcher": windlass.dispatcher.pid,
        "guardian": windlass.actors.pid,
        "worker": worker,
        "janitor": windlass.janitor.pid,
        "schedule": schedule,
    }


def grow(windlass: Windlass, url: str) -> dict[str, float]:
    """Bytes that one no-op task leaves in each kind of file, and that it sends through the log."""
    execute(url, "CHECKPOINT")
    sizes, position = sizes_of(url), ask(url, "SELECT pg_current_wal_insert_lsn()::text AS at")[0]["at"]
    for begin in range(0, TASKS, 1000):
        windlass.client.submit_many([{}] * min(1000, TASKS - begin))
    count = "SELECT count(*) FROM tasks WHERE status = 'completed'"
    wait_until("all are done", lambda: ask(url, count)[0][0] == TASKS, seconds=180, every=0.2)
    log = ask(url, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), $1::text::pg_lsn)::float AS bytes", position)
    after = sizes_of(url)
    grown = {name: (after[name] - sizes[name]) / TASKS for name in after}
    return {**grown, "wal": log[0]["bytes"] / TASKS}


def sizes_of(url: str) -> dict[str, float]:
    """Tables with what is stored aside, and indexes."""
    rows = ask(
        url,
        """
        SELECT CASE relname WHEN 'task_events' THEN 'events' WHEN 'tasks' THEN 'tasks' ELSE 'other' END AS kind,
               sum(pg_table_size(oid))::float AS rows, sum(pg_indexes_size(oid))::float AS indexes
        FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
        GROUP BY 1
        """,
    )
    return {f"{row['kind']} {part}": row[part] for row in rows for part in ("rows", "indexes")}


def what_a_task_takes(found: Mapping[str, float]) -> list[Figure]:
    kept = sum(size for name, size in found.items() if name != "wal")
    parts = ", ".join(f"{name} {size:,.0f}" for name, size in found.items() if name != "wal")
    numbers = {f"{name.replace(' ', '_')}_bytes": size for name, size in found.items()}
    return [
        Figure(
            f"bytes kept of a task that does nothing, of {TASKS:,}",
            f"{kept:,.0f} ({parts})",
            "for ever",
            {"kept_bytes": kept, **numbers},
        ),
        Figure(
            "bytes of write-ahead log per task",
            f"{found['wal']:,.0f}",
            "from one checkpoint on, full pages included",
            {"wal_bytes": found["wal"]},
        ),
    ]


def what_processes_hold(idle: Mapping[str, int], used: Mapping[str, int]) -> list[Figure]:
    """Shared pages divided among those that share them."""
    return [
        Figure(
            f"memory, {name}",
            f"{idle[name] / MEGABYTE:.0f} MB idle, {used[name] / MEGABYTE:.0f} MB after {TASKS:,} tasks",
            "",
            {"idle_mb": idle[name] / MEGABYTE, "used_mb": used[name] / MEGABYTE},
            label=name,
        )
        for name in idle
    ]


def what_idleness_costs(asked: Counter[Asked], shares: Mapping[str, float]) -> list[Figure]:
    found = []
    for name, share in shares.items():
        mine = Counter({each: times for each, times in asked.items() if owner_of(each.application) == name})
        per_second = mine.total() / IDLE_SECONDS
        most = "; ".join(f"{times * 60 / IDLE_SECONDS:.3g} x {what[:60]}" for what, times in by_statement(mine)[:5])
        found.append(
            Figure(
                f"idle, {name}",
                f"{per_second:.2f} queries/s, {share:.2%} of a core" + (f"; a minute: {most}" if most else ""),
                f"< {AIM_PER_SECOND} query/s",
                {"queries_per_second": per_second, "cpu_share": share},
                reached=per_second < AIM_PER_SECOND,
                label=name,
            )
        )
    return found


def by_statement(asked: Counter[Asked]) -> list[tuple[str, int]]:
    """How often each was asked, over all connections, the most frequent first."""
    together: Counter[str] = Counter()
    for each, times in asked.items():
        together[each.statement] += times
    return together.most_common()


def owner_of(application: str) -> str:
    words = application.split("-")
    return OWNERS.get(words[1], application) if len(words) > 1 and words[0] == "windlass" else application

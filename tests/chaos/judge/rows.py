"""The tables as the checker reads them, by statements of its own: it shares no line of code with what it judges."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import asyncpg

ENDED = ("completed", "dead", "cancelled")


@dataclass(frozen=True)
class TaskRow:
    task_id: str
    actor: str
    provider: str
    status: str
    attempt: int
    last_seq: int
    job_open: bool
    result: Any = None
    worker_id: str | None = None
    completed_at: float | None = None
    lease_expires_at: float | None = None

    @property
    def has_ended(self) -> bool:
        return self.status in ENDED


@dataclass(frozen=True)
class EventRow:
    seq: int
    type: str
    at: float
    attempt: int
    xid: int = 0
    worker_id: str | None = None
    """Of a claim: who made it."""
    error: str | None = None
    status: str | None = None
    """What it made of the task, where it says so."""


@dataclass(frozen=True)
class WorkerRow:
    worker_id: str
    pid: int
    state: str
    heartbeat_at: float


@dataclass(frozen=True)
class Rows:
    """Everything at one moment, which is `at` by Postgres' clock."""

    at: float
    tasks: Mapping[str, TaskRow]
    events: Mapping[str, Sequence[EventRow]]
    limits: Mapping[str, int | None] = field(default_factory=dict)
    """As they were configured; an operator's changes are in the record."""
    workers: Sequence[WorkerRow] = ()
    open_jobs: Sequence[tuple[str, str]] = ()
    """Task and status of every order that is neither known to have ended nor given up."""


TASKS = """
    SELECT task_id::text, actor, provider, status, attempt, last_seq, job_open, result::text, worker_id,
           extract(epoch FROM completed_at)::float AS completed_at,
           extract(epoch FROM lease_expires_at)::float AS lease_expires_at
    FROM tasks
"""
EVENTS = """
    SELECT task_id::text, seq, type, extract(epoch FROM at)::float AS at, attempt, xid::text::bigint AS xid,
           data ->> 'worker_id' AS worker_id, data -> 'error' ->> 'message' AS error, data ->> 'status' AS status
    FROM task_events ORDER BY task_id, seq
"""
WORKERS = "SELECT worker_id, pid, state, extract(epoch FROM heartbeat_at)::float AS heartbeat_at FROM workers"
OPEN_JOBS = """
    SELECT task_id::text, status FROM generations
    WHERE status IN ('intended', 'open', 'fetching', 'unknown') AND NOT given_up
"""
UNSETTLED = """
    SELECT (SELECT count(*) FROM tasks WHERE status IN ('blocked', 'queued', 'retrying', 'running') OR job_open)
         + (SELECT count(*) FROM generations
            WHERE status IN ('intended', 'open', 'fetching', 'unknown') AND NOT given_up)
         + (SELECT count(*) FROM projects WHERE state <> 'idle')
         + (SELECT count(*) FROM outbox)
         + (SELECT count(*) FROM agent_events WHERE gathered_at IS NULL)
"""


MATTER = {
    "tasks": "SELECT count(*) FROM tasks",
    "runs of projects": "SELECT count(*) FROM project_runs",
    "workflows": "SELECT count(*) FROM workflows",
    "deliveries": "SELECT count(*) FROM deliveries",
    "due times": "SELECT count(*) FROM schedule_runs",
    "ends of agents": "SELECT count(*) FROM agent_events",
    "finished steps": "SELECT count(*) FROM task_steps",
}


def read_rows(database_url: str) -> Rows:
    return asyncio.run(_read(database_url))


def count_unsettled(database_url: str) -> int:
    """How many tasks have not ended, jobs are still open and projects run: none when all is quiet."""

    async def ask() -> int:
        connection = await asyncpg.connect(database_url, timeout=10)
        try:
            return int(await connection.fetchval(UNSETTLED))
        finally:
            await connection.close()

    return asyncio.run(ask())


def count_matter(database_url: str) -> dict[str, int]:
    """How much of each kind there was to be judged: none of a kind, and nothing is proven of it."""

    async def ask() -> dict[str, int]:
        connection = await asyncpg.connect(database_url, timeout=30)
        try:
            return {name: int(await connection.fetchval(query)) for name, query in MATTER.items()}
        finally:
            await connection.close()

    return asyncio.run(ask())


async def _read(database_url: str) -> Rows:
    connection = await asyncpg.connect(database_url, timeout=30)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            at = await connection.fetchval("SELECT extract(epoch FROM clock_timestamp())::float")
            tasks = [_task(row) for row in await connection.fetch(TASKS)]
            events: dict[str, list[EventRow]] = defaultdict(list)
            for row in await connection.fetch(EVENTS):
                values = dict(row)
                events[values.pop("task_id")].append(EventRow(**values))
            limits = await connection.fetch("SELECT name, configured_limit FROM providers")
            workers = [WorkerRow(**dict(row)) for row in await connection.fetch(WORKERS)]
            jobs = await connection.fetch(OPEN_JOBS)
    finally:
        await connection.close()
    return Rows(
        at=at,
        tasks={task.task_id: task for task in tasks},
        events=events,
        limits={row["name"]: row["configured_limit"] for row in limits},
        workers=workers,
        open_jobs=[(row["task_id"], row["status"]) for row in jobs],
    )


def _task(row: asyncpg.Record) -> TaskRow:
    values = dict(row)
    if values["result"] is not None:
        values["result"] = json.loads(values["result"])
    return TaskRow(**values)

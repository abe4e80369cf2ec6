"""The tables of projects as the judge reads them, by statements of its own."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import asyncpg


@dataclass(frozen=True)
class ProjectRow:
    project_id: str
    state: str
    last_seq: int
    events: int = 0
    """How many rows its history has."""


@dataclass(frozen=True)
class RunRow:
    run_id: str
    project_id: str
    item_id: str
    task_id: str
    mode: str
    state: str
    started_at: float
    ended_at: float | None
    is_scheduled: bool = False


@dataclass(frozen=True)
class ItemRow:
    item_id: str
    project_id: str
    state: str
    last_run_id: str | None


@dataclass(frozen=True)
class ProjectRows:
    projects: Sequence[ProjectRow] = ()
    runs: Sequence[RunRow] = ()
    """In the order of their beginning."""
    items: Sequence[ItemRow] = ()
    tasks: Mapping[str, str] = field(default_factory=dict)
    """By task its project: those of runs, and those that were to be, and none of what came of them."""
    parents: Mapping[str, str] = field(default_factory=dict)
    """By child its parent."""


PROJECTS = """
    SELECT project_id::text, state, last_seq,
           (SELECT count(*) FROM project_events e WHERE e.project_id = p.project_id)::int AS events
    FROM projects p
"""
RUNS = """
    SELECT run_id::text, project_id::text, item_id::text, task_id::text, mode, state,
           extract(epoch FROM started_at)::float AS started_at, extract(epoch FROM ended_at)::float AS ended_at,
           schedule_id IS NOT NULL AS is_scheduled
    FROM project_runs ORDER BY started_at
"""
ITEMS = "SELECT item_id::text, project_id::text, state, last_run_id::text FROM project_items"
TASKS = """
    SELECT task_id::text, project_id FROM tasks
    WHERE parent_task_id IS NULL AND project_id IN (SELECT p.project_id::text FROM projects p)
"""
PARENTS = "SELECT task_id::text, parent_task_id::text FROM tasks WHERE parent_task_id IS NOT NULL"


def read_projects(database_url: str) -> ProjectRows:
    return asyncio.run(_read(database_url))


async def _read(database_url: str) -> ProjectRows:
    connection = await asyncpg.connect(database_url, timeout=30)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            return ProjectRows(
                [ProjectRow(**dict(row)) for row in await connection.fetch(PROJECTS)],
                [RunRow(**dict(row)) for row in await connection.fetch(RUNS)],
                [ItemRow(**dict(row)) for row in await connection.fetch(ITEMS)],
                {row["task_id"]: row["project_id"] for row in await connection.fetch(TASKS)},
                {row["task_id"]: row["parent_task_id"] for row in await connection.fetch(PARENTS)},
            )
    finally:
        await connection.close()

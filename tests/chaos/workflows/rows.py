"""The tables of workflows as the judge reads them, by statements of its own, and what the storm's witness has seen."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import asyncpg


@dataclass(frozen=True)
class WorkflowRow:
    workflow_id: str
    status: str
    failure_threshold: int | None = None
    differs: str | None = None
    """What its tasks say at the end, where that is something else."""


@dataclass(frozen=True)
class NodeRow:
    """What stands for the tasks of a list."""

    workflow_id: str
    key: str
    status: str
    members: int | None
    source: str
    path: str


@dataclass(frozen=True)
class TaskOfAWorkflow:
    task_id: str
    workflow_id: str
    key: str | None
    actor: str
    status: str
    payload: Any = None
    result: Any = None
    is_asked_about: bool = False


@dataclass(frozen=True)
class Stand:
    """From this transaction on a workflow stands, or does not any more."""

    seq: int
    stands: bool
    xid: int


@dataclass(frozen=True)
class Failure:
    """From this transaction on a workflow has one failure more, or one less: a resume forgives them."""

    change: int
    xid: int


@dataclass(frozen=True)
class Claim:
    """What was committed for who granted it, as Postgres writes a snapshot: `xmin:xmax:xip,…`."""

    task_id: str
    seq: int
    at: float
    attempt: int
    saw: str

    def has_seen(self, xid: int) -> bool:
        _, upper, under_way = self.saw.split(":")
        return xid < int(upper) and str(xid) not in under_way.split(",")


@dataclass(frozen=True)
class WorkflowRows:
    workflows: Sequence[WorkflowRow] = ()
    nodes: Sequence[NodeRow] = ()
    tasks: Mapping[str, TaskOfAWorkflow] = field(default_factory=dict)
    stands: Mapping[str, Sequence[Stand]] = field(default_factory=dict)
    """By workflow, in order."""
    failures: Mapping[str, Sequence[Failure]] = field(default_factory=dict)
    """By workflow."""
    claims: Sequence[Claim] = ()
    mismatches: Sequence[tuple[str, float, str]] = ()
    """Workflow, time and words of each commit at which one was not what its tasks say, and no outbox row waited."""
    pending: int = 0
    """Outbox rows of workflows."""


WORKFLOWS = """
    SELECT workflow_id::text, status, failure_threshold, storm_differs(workflow_id) AS differs FROM workflows
"""
NODES = "SELECT group_id::text AS workflow_id, key, status, members, source::text, path FROM barriers"
TASKS = """
    SELECT task_id::text, workflow_id, workflow_key AS key, actor, status, payload::text, result::text,
           approval IS NOT NULL AS is_asked_about
    FROM tasks WHERE concerns & 2 <> 0
"""
STANDS = "SELECT workflow_id::text, seq, stands, xid::text::bigint AS xid FROM storm_stands ORDER BY workflow_id, seq"
FAILURES = "SELECT workflow_id::text, change, xid::text::bigint AS xid FROM storm_failures"
CLAIMS = """
    SELECT e.task_id::text, e.seq, extract(epoch FROM e.at)::float AS at, e.attempt, e.data ->> 'saw' AS saw
    FROM task_events e JOIN tasks t ON t.task_id = e.task_id
    WHERE t.concerns & 2 <> 0 AND e.type = 'claim' AND e.data ? 'saw'
"""
MISMATCHES = "SELECT workflow_id::text, extract(epoch FROM at)::float AS at, words FROM storm_mismatches ORDER BY at"
PENDING = "SELECT count(*) FROM outbox WHERE feature = 'workflow'"


def read_workflows(database_url: str) -> WorkflowRows:
    """Nothing, where no storm has installed its witness."""
    return asyncio.run(_read(database_url))


async def _read(database_url: str) -> WorkflowRows:
    connection = await asyncpg.connect(database_url, timeout=30)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            if await connection.fetchval("SELECT to_regclass('public.storm_mismatches')") is None:
                return WorkflowRows()
            stands: dict[str, list[Stand]] = {}
            for row in await connection.fetch(STANDS):
                stands.setdefault(row["workflow_id"], []).append(Stand(row["seq"], row["stands"], row["xid"]))
            failures: dict[str, list[Failure]] = {}
            for row in await connection.fetch(FAILURES):
                failures.setdefault(row["workflow_id"], []).append(Failure(row["change"], row["xid"]))
            tasks = [_task(row) for row in await connection.fetch(TASKS)]
            return WorkflowRows(
                [WorkflowRow(**dict(row)) for row in await connection.fetch(WORKFLOWS)],
                [NodeRow(**dict(row)) for row in await connection.fetch(NODES)],
                {task.task_id: task for task in tasks},
                stands,
                failures,
                [Claim(**dict(row)) for row in await connection.fetch(CLAIMS)],
                [tuple(row) for row in await connection.fetch(MISMATCHES)],
                await connection.fetchval(PENDING),
            )
    finally:
        await connection.close()


def _task(row: asyncpg.Record) -> TaskOfAWorkflow:
    values = dict(row)
    for name in ("payload", "result"):
        values[name] = None if values[name] is None else json.loads(values[name])
    return TaskOfAWorkflow(**values)

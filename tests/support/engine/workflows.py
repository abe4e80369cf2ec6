"""Workflows on the engine: short ways to make one, to move its tasks, and to hold its status against its tasks."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from tests.support.engine.store import Engine, a_submission
from windlass.shared.concerns import Concern
from windlass.shared.db import as_json
from windlass.shared.features.handling import handle_pending
from windlass.shared.features.workflows import operations
from windlass.shared.features.workflows.subscriber import WORKFLOWS
from windlass.shared.store.rows import WorkflowRow
from windlass.shared.store.tasks import Claimed, Submission, dependencies
from windlass.shared.store.workflows import reading
from windlass.shared.store.workflows.submitting import NewNode, NewWorkflow, submit

CONCERNS = Concern.WORKFLOW.value


class AWorkflow:
    """One that was stored, by the keys of its tasks."""

    def __init__(self, engine: Engine, workflow_id: UUID, ids: Mapping[str, UUID], nodes: Mapping[str, UUID]) -> None:
        self.engine = engine
        self.workflow_id = workflow_id
        self.ids = ids
        self.nodes = nodes

    async def status(self) -> str:
        return (await self.row()).status

    async def row(self) -> WorkflowRow:
        """As the api reads it: after everything that has happened until now."""
        row = await operations.caught_up(self.engine.pool, self.engine.pool, self.workflow_id)
        assert row is not None
        return row

    async def statuses(self) -> dict[str, str]:
        """By key: of its tasks, and of its nodes."""
        await self.row()
        tasks = {
            row.workflow_key or str(row.task_id): row.status
            for row in await reading.tasks_of(self.engine.pool, self.workflow_id)
        }
        nodes = {row.key: row.status for row in await reading.nodes_of(self.engine.pool, self.workflow_id)}
        return tasks | nodes

    async def task(self, key: str) -> UUID:
        if key in self.ids:
            return self.ids[key]
        (row,) = [
            each for each in await reading.tasks_of(self.engine.pool, self.workflow_id) if each.workflow_key == key
        ]
        return row.task_id

    async def start(self, key: str) -> Claimed:
        return await self.engine.start(await self.task(key))

    async def finish(self, key: str, transition: str = "complete", **fields: Any) -> None:
        await self.engine.finish(await self.start(key), transition, **fields)

    async def story(self) -> list[str]:
        await self.row()
        rows = await self.engine.pool.fetch(
            "SELECT type FROM workflow_events WHERE workflow_id = $1 ORDER BY seq", self.workflow_id
        )
        return [row["type"] for row in rows]

    async def held(self) -> set[str]:
        await self.row()
        rows = await self.engine.pool.fetch(
            "SELECT workflow_key FROM tasks WHERE workflow_id = $1 AND 'workflow' = ANY (held)", str(self.workflow_id)
        )
        return {row["workflow_key"] for row in rows}

    async def janitor(self) -> None:
        """Everything that is left to the janitor and the orchestrator."""
        await tidy_up(self.engine)


async def tidy_up(engine: Engine) -> None:
    busy = True
    while busy:
        busy = await dependencies.settle_next(engine.pool) or await relay_all(engine)


async def relay_all(engine: Engine) -> bool:
    """Handles every outbox row of workflows, and returns whether there was one."""
    found = await engine.pool.fetch("SELECT DISTINCT subject FROM outbox WHERE feature = 'workflow'")
    for row in found:
        outcome = await handle_pending(engine.pool, WORKFLOWS, [row["subject"]], waits=True)
        assert not outcome.failed
    return bool(found)


def in_a_workflow(workflow_id: UUID, key: str | None = None, **fields: Any) -> Submission:
    concerns = fields.pop("concerns", 0) | CONCERNS
    return a_submission(
        workflow_id=str(workflow_id), group_id=workflow_id, workflow_key=key, concerns=concerns, **fields
    )


async def a_workflow(
    engine: Engine,
    graph: Mapping[str, Sequence[str]],
    *,
    for_each: Mapping[str, tuple[str, str]] | None = None,
    after_end: Mapping[str, Sequence[str]] | None = None,
    fields: Mapping[str, dict[str, Any]] | None = None,
    **options: Any,
) -> AWorkflow:
    """`graph` has by key what each waits for, in an order in which everybody comes after what it waits for; `for_each`
    the source of a node's list and its path; `after_end` which of those may end as they like."""
    workflow_id, each, loose, fields = uuid7(), for_each or {}, after_end or {}, fields or {}
    owner = options.pop("owner", "ann")
    ids = [uuid7() for _ in graph]
    if (chance := options.pop("ids_by_lot", None)) is not None:
        chance.shuffle(ids)
    made = dict(zip(graph, ids, strict=True))
    nodes, submissions = [], []
    for key, waits_for in graph.items():
        own = {
            "depends_on": [made[name] for name in waits_for if name not in each],
            "depends_on_barriers": [made[name] for name in waits_for if name in each],
            "after_end": [made[name] for name in loose.get(key, ())],
            "user_id": owner,
            **fields.get(key, {}),
        }
        if key in each:
            source, path = each[key]
            template = in_a_workflow(workflow_id, **own)
            nodes.append(
                NewNode(
                    node_id=made[key],
                    key=key,
                    source=made[source],
                    source_is_node=source in each,
                    path=path,
                    template=_as_stored(template),
                )
            )
        else:
            submissions.append(in_a_workflow(workflow_id, key, task_id=made[key], **own))
    new = NewWorkflow(workflow_id=workflow_id, user_id=owner, name=options.pop("name", "report"), **options)
    await submit(engine.pool, new, nodes, submissions)
    own_ids = {key: task_id for key, task_id in made.items() if key not in each}
    return AWorkflow(engine, workflow_id, own_ids, {key: made[key] for key in each})


def _as_stored(template: Submission) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(as_json(template))
    del document["task_id"]
    return document


@asynccontextmanager
async def compared(engine: Engine) -> AsyncIterator[None]:
    """At the end no workflow has other counts than its tasks, once its rows are handled."""
    yield
    await tidy_up(engine)
    assert await operations.count_drift(engine.pool) == []

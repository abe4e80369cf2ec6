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
from windlass.shared.store.rows import WorkflowRow
from windlass.shared.store.tasks import Claimed, Submission, dependencies
from windlass.shared.store.workflows import controlling, reading
from windlass.shared.store.workflows.submitting import NewNode, NewWorkflow, submit
from windlass.shared.workflow_states import STATUS_OF_COUNTS

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
        row = await reading.get(self.engine.pool, self.workflow_id)
        assert row is not None
        return row

    async def statuses(self) -> dict[str, str]:
        """By key: of its tasks, and of what stands for others."""
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
        rows = await self.engine.pool.fetch(
            "SELECT type FROM workflow_events WHERE workflow_id = $1 ORDER BY seq", self.workflow_id
        )
        return [row["type"] for row in rows]

    async def held(self) -> set[str]:
        rows = await self.engine.pool.fetch(
            "SELECT workflow_key FROM tasks WHERE workflow_id = $1 AND 'workflow' = ANY (held)", str(self.workflow_id)
        )
        return {row["workflow_key"] for row in rows}

    async def janitor(self) -> None:
        """Everything that is left to it."""
        await tidy_up(self.engine)


async def tidy_up(engine: Engine) -> None:
    busy = True
    while busy:
        busy = (
            await dependencies.settle_next(engine.pool)
            or await controlling.expand_next(engine.pool)
            or await controlling.advance_next(engine.pool)
        )


def in_a_workflow(workflow_id: UUID, key: str | None = None, **fields: Any) -> Submission:
    concerns = fields.pop("concerns", 0) | CONCERNS
    return a_submission(workflow_id=str(workflow_id), workflow_key=key, concerns=concerns, **fields)


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
            "depends_on_nodes": [made[name] for name in waits_for if name in each],
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


COMPARE = f"""
CREATE FUNCTION public.compare_workflow() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    w workflows;
    follows text;
BEGIN
    SELECT * INTO w FROM workflows
    WHERE workflow_id = (to_jsonb(NEW) ->> 'workflow_id')::uuid;
    IF NOT FOUND THEN RETURN NULL; END IF;
    SELECT {STATUS_OF_COUNTS} INTO follows FROM (
        SELECT count(*) FILTER (WHERE status IN ('blocked', 'queued', 'running', 'retrying')) AS live,
               count(*) FILTER (WHERE status = 'dead') AS dead,
               count(*) FILTER (WHERE status = 'cancelled') AS cancelled,
               w.failures AS failures, w.failure_threshold AS failure_threshold,
               w.cancel_requested AS cancel_requested
        FROM (
            SELECT t.status FROM tasks t WHERE t.workflow_id = w.workflow_id::text AND t.concerns & 2 <> 0
            UNION ALL SELECT n.status FROM workflow_nodes n WHERE n.workflow_id = w.workflow_id
        ) AS item
    ) AS counts;
    IF follows <> w.status THEN
        RAISE EXCEPTION 'workflow % is %, and its tasks say %', w.workflow_id, w.status, follows;
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER compare_tasks AFTER INSERT OR UPDATE OF status ON tasks
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.concerns & 2 <> 0) EXECUTE FUNCTION public.compare_workflow();
CREATE CONSTRAINT TRIGGER compare_workflows AFTER UPDATE ON workflows
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.compare_workflow();
"""
"""Holds the status against the tasks themselves, counted anew at every commit."""

NO_MORE = """
DROP TRIGGER compare_tasks ON tasks; DROP TRIGGER compare_workflows ON workflows; DROP FUNCTION compare_workflow;
"""


@asynccontextmanager
async def compared(engine: Engine) -> AsyncIterator[None]:
    await engine.pool.execute(COMPARE)
    try:
        yield
    finally:
        await engine.pool.execute(NO_MORE)

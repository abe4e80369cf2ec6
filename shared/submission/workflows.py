"""From what somebody says of a workflow to one that can be stored, or to the refusal that names what is wrong."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec.structs import replace
from pydantic import ConfigDict, Field, ValidationError
from uuid_utils.compat import uuid7

from windlass.shared.actors.new_task import NewTask
from windlass.shared.concerns import Concern
from windlass.shared.db import as_json
from windlass.shared.filters import Label
from windlass.shared.forms import Form, at_most
from windlass.shared.settings import Settings
from windlass.shared.store.tasks import Submission
from windlass.shared.store.workflows.submitting import NewNode, NewWorkflow
from windlass.shared.submission.checks.asking import Asker
from windlass.shared.submission.graphs import NOT_IN_A_WORKFLOW, Awaited, Node, apart, as_id, in_order
from windlass.shared.submission.known import Actors
from windlass.shared.submission.referring import Refers
from windlass.shared.submission.refusal import Refused, refusal, wrong_fields
from windlass.shared.submission.rules import submission_of

MOST_TASKS, MOST_EDGES = 1000, 50_000

OF_A_WORKFLOW = Concern.WORKFLOW.value

_canonical = msgspec.json.Encoder(order="sorted")


class WorkflowHead(Form):
    """A workflow to be, but for its tasks."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: Annotated[Label, Field(description="What it is called.")]
    failure_threshold: Annotated[
        int | None,
        Field(ge=1, le=1_000_000, description="So many failures stop it, until somebody resumes or cancels it."),
    ] = None
    tags: Annotated[list[Label], Field(max_length=50, description="Words to find it by."), at_most(50)] = Field(
        default_factory=list
    )


class Wanted(msgspec.Struct, frozen=True):
    """A workflow that can be stored."""

    workflow: NewWorkflow
    nodes: Sequence[NewNode]
    submissions: Sequence[Submission]


def workflow_of(
    body: Any,
    caller: Asker,
    settings: Settings,
    actors: Actors,
    *,
    idempotency_key: str | None = None,
    traceparent: str | None = None,
) -> Wanted:
    """Raises Refused."""
    if not isinstance(body, dict):
        raise refusal("", "invalid-workflow", "a workflow is an object with `name` and `tasks`")
    tasks = body.get("tasks")
    if not isinstance(tasks, list) or not 0 < len(tasks) <= MOST_TASKS:
        raise refusal("/tasks", "invalid-workflow", f"a workflow is a list of 1 to {MOST_TASKS} tasks")
    lists = (task.get("depends_on") for task in tasks if isinstance(task, dict))
    edges = sum(len(named) for named in lists if isinstance(named, list))
    if edges > MOST_EDGES:
        detail = f"the tasks of a workflow may have {MOST_EDGES:,} dependencies together; these have {edges:,}"
        raise refusal("/tasks", "invalid-workflow", detail)
    head = _head(body)
    nodes, rests = [], []
    for number, task in enumerate(tasks):
        node, rest = _node(task, f"/tasks/{number}")
        nodes.append(node)
        rests.append(rest)
    wanted = _Making(nodes, rests, caller, settings, actors, traceparent).made(in_order(nodes))
    workflow = NewWorkflow(
        workflow_id=wanted.workflow_id,
        user_id=caller.user_id,
        name=head.name,
        tags=head.tags,
        failure_threshold=head.failure_threshold,
        idempotency_key=idempotency_key,
        idempotency_ttl_seconds=settings.defaults.idempotency_ttl_seconds,
        body_hash=None if idempotency_key is None else hashlib.sha256(_canonical.encode(body)).hexdigest(),
    )
    return Wanted(workflow, wanted.nodes, wanted.submissions)


def _head(body: Mapping[str, Any]) -> WorkflowHead:
    try:
        return WorkflowHead.model_validate({name: value for name, value in body.items() if name != "tasks"})
    except ValidationError as error:
        raise Refused("invalid-workflow", wrong_fields(error, WorkflowHead, beside=("tasks",))) from error


def _node(task: Any, below: str) -> tuple[Node, dict[str, Any]]:
    """A task's place in the graph, and the rest of it."""
    if not isinstance(task, dict):
        raise refusal(below, "invalid-workflow", "a task is an object")
    for name in NOT_IN_A_WORKFLOW.keys() & task.keys():
        raise refusal(f"{below}/{name}", "invalid-workflow", NOT_IN_A_WORKFLOW[name])
    place, rest = apart(task)
    try:
        return Node.model_validate(place), rest
    except ValidationError as error:
        raise Refused("invalid-workflow", wrong_fields(error, Node, below=below)) from error


def _task(body: Any, below: str) -> NewTask:
    try:
        return NewTask.model_validate(body)
    except ValidationError as error:
        raise Refused("invalid-task", wrong_fields(error, NewTask, below=below)) from error


class _Making:
    """Ids are given out in the order of the graph: whoever waits has the larger one, and locks follow that order."""

    def __init__(  # noqa: PLR0917 - made in one place
        self,
        nodes: Sequence[Node],
        rests: Sequence[dict[str, Any]],
        caller: Asker,
        settings: Settings,
        actors: Actors,
        traceparent: str | None,
    ) -> None:
        self._nodes = nodes
        self._rests = rests
        self._about = (caller, settings, actors)
        self._traceparent = traceparent
        self._ids: dict[str, UUID] = {}
        self._of_each = {node.key for node in nodes if node.for_each is not None}
        self.workflow_id: UUID = uuid7()
        self._written_id = str(self.workflow_id)
        self.nodes: list[NewNode] = []
        self.submissions: list[Submission] = []

    def made(self, order: Sequence[int]) -> "_Making":
        for number in order:
            self._ids[self._nodes[number].key] = uuid7()
        for number in order:
            self._make(self._nodes[number], number)
        return self

    def _make(self, node: Node, number: int) -> None:
        below = f"/tasks/{number}"
        wanted = _task(self._rests[number], below)
        refers = Refers(frozenset(node.names), of_an_element=node.for_each is not None) if node.names else None
        caller, settings, actors = self._about
        submission = submission_of(
            wanted, caller, settings, actors, below=below, traceparent=self._traceparent, refers=refers
        )
        submission = replace(
            submission,
            task_id=self._ids[node.key],
            workflow_id=self._written_id,
            workflow_key=node.key,
            group_id=self.workflow_id,
            concerns=submission.concerns | OF_A_WORKFLOW,
            **self._edges(node.waits),
        )
        if node.for_each is None:
            self.submissions.append(submission)
            return
        template = msgspec.json.decode(as_json(submission))
        del template["task_id"], template["workflow_key"]
        self.nodes.append(
            NewNode(
                node_id=self._ids[node.key],
                key=node.key,
                source=self._ids[node.for_each.source],
                source_is_node=node.for_each.source in self._of_each,
                path=node.for_each.path,
                template=template,
            )
        )

    def _edges(self, waits: Sequence[Awaited]) -> dict[str, list[UUID]]:
        """What is left empty is not said: Postgres would read it for each."""
        edges: dict[str, list[UUID]] = {}
        for key, on in waits:
            task_id = self._ids.get(key) or as_id(key)
            if task_id is None:
                continue
            edges.setdefault("depends_on_barriers" if key in self._of_each else "depends_on", []).append(task_id)
            if on == "ended":
                edges.setdefault("after_end", []).append(task_id)
        return edges

"""Criteria 12 to 16: what a workflow promises, judged by rows, by what people were told, and by the storm's witness."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.chaos.judge.rows import EventRow, Rows
from tests.chaos.judge.violation import (
    DECIDED_TWICE,
    EXPANDED_WRONGLY,
    NOT_WHAT_TASKS_SAY,
    RUN_AFTER_COMPLETION,
    STARTED_STANDING,
    Violation,
)
from tests.chaos.record import Record
from tests.chaos.workflows.rows import Claim, NodeRow, Stand, TaskOfAWorkflow, WorkflowRows

ENDED = {"completed", "failed", "cancelled"}
DECISIONS = {"approve", "reject"}


def judge_workflows(record: Record, rows: Rows, workflows: WorkflowRows) -> Iterator[Violation]:
    yield from started_standing(workflows)
    yield from run_after_completion(rows, workflows)
    yield from expanded_wrongly(rows, workflows)
    yield from decided_twice(record, rows, workflows)
    yield from not_what_tasks_say(record, rows, workflows)


# 12


def started_standing(workflows: WorkflowRows) -> Iterator[Violation]:
    """A claim that could see that its workflow was escalated or being cancelled, or that as many of its tasks had
    failed as its threshold says: the orchestrator need not have counted them yet. A task with an open job of its own
    continues to wait for it."""
    thresholds = {workflow.workflow_id: workflow.failure_threshold for workflow in workflows.workflows}
    for claim in workflows.claims:
        task = workflows.tasks[claim.task_id]
        if task.actor == "media" and claim.attempt > 1:
            continue
        seen = _last_seen(claim, workflows.stands.get(task.workflow_id, ()))
        if seen is not None and seen.stands:
            words = f"{_named(task)} was claimed when its workflow stood, by its event {seen.seq}"
            yield Violation(STARTED_STANDING, words, claim.task_id, claim.at)
            continue
        failures = workflows.failures.get(task.workflow_id, ())
        seen_failures = sum(failure.change for failure in failures if claim.has_seen(failure.xid))
        threshold = thresholds.get(task.workflow_id)
        if threshold is not None and seen_failures >= threshold:
            words = f"{_named(task)} was claimed although {seen_failures} tasks of its workflow had failed"
            yield Violation(STARTED_STANDING, words, claim.task_id, claim.at)


def _last_seen(claim: Claim, stands: Sequence[Stand]) -> Stand | None:
    return next((stand for stand in reversed(stands) if claim.has_seen(stand.xid)), None)


# 13


def run_after_completion(rows: Rows, workflows: WorkflowRows) -> Iterator[Violation]:
    for task in workflows.tasks.values():
        has_completed = False
        for event in rows.events.get(task.task_id, ()):
            if has_completed and event.type in {"claim", "revive"}:
                words = f"{_named(task)} had completed, and there was a `{event.type}` (seq {event.seq})"
                yield Violation(RUN_AFTER_COMPLETION, words, task.task_id, event.at)
            has_completed = has_completed or event.type == "complete"


# 14


def expanded_wrongly(rows: Rows, workflows: WorkflowRows) -> Iterator[Violation]:
    by_key: dict[tuple[str, str | None], list[TaskOfAWorkflow]] = defaultdict(list)
    for task in workflows.tasks.values():
        if task.key is not None:
            by_key[task.workflow_id, task.key].append(task)
    for node in workflows.nodes:
        children = {key: tasks for (id_, key), tasks in by_key.items() if id_ == node.workflow_id and _is_of(key, node)}
        yield from _not_once(node, children, rows, workflows)
        if node.members is not None:
            in_order = [children.get(f"{node.key}[{number}]", [None])[0] for number in range(node.members)]
            yield from _out_of_order(node, in_order, rows, workflows)


def _is_of(key: str | None, node: NodeRow) -> bool:
    return key is not None and key.startswith(f"{node.key}[")


def _not_once(
    node: NodeRow, children: Mapping[str | None, Sequence[TaskOfAWorkflow]], rows: Rows, workflows: WorkflowRows
) -> Iterator[Violation]:
    """As many tasks as its list has elements, each once, and all in one transaction."""
    where = f"list {node.key} of workflow {node.workflow_id}"
    for key, tasks in children.items():
        if len(tasks) > 1:
            yield Violation(EXPANDED_WRONGLY, f"{where} has {key} {len(tasks)} times", tasks[-1].task_id)
    made = {event.xid for tasks in children.values() for task in tasks for event in _submits(rows, task.task_id)}
    if len(made) > 1:
        yield Violation(EXPANDED_WRONGLY, f"{where} became tasks in {len(made)} transactions")
    elements = _elements(node, workflows)
    if node.members is None:
        if children:
            yield Violation(EXPANDED_WRONGLY, f"{where} has {len(children)} tasks, and says that it has none yet")
    elif elements is None or len(elements) != node.members or len(children) != node.members:
        words = f"{where} of {elements!r} counts {node.members} tasks, and there are {len(children)}"
        yield Violation(EXPANDED_WRONGLY, words)


def _submits(rows: Rows, task_id: str) -> list[EventRow]:
    return [event for event in rows.events.get(task_id, ()) if event.type == "submit"]


def _elements(node: NodeRow, workflows: WorkflowRows) -> list[Any] | None:
    source = workflows.tasks.get(node.source)
    found = None if source is None or source.status != "completed" else source.result
    for name in node.path.split("/")[1:]:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, list) else None


def _out_of_order(
    node: NodeRow, children: Sequence[TaskOfAWorkflow | None], rows: Rows, workflows: WorkflowRows
) -> Iterator[Violation]:
    """Each has got its own element, and a join the results of all in their order: of who had not completed when it was
    claimed it has nothing."""
    for number, (child, element) in enumerate(zip(children, _elements(node, workflows) or (), strict=False)):
        if child is not None and child.status == "completed" and child.result["echo"] != element:
            words = f"{node.key}[{number}] is for {element!r}, and was given {child.result['echo']!r}"
            yield Violation(EXPANDED_WRONGLY, words, child.task_id)
    for join in workflows.tasks.values():
        is_join = join.workflow_id == node.workflow_id and join.payload.get("result") == {"$from": node.key}
        if not is_join or join.status != "completed":
            continue
        claimed_at = max(event.at for event in rows.events[join.task_id] if event.type == "claim")
        expected = [_result_at(child, rows, claimed_at) for child in children if _is_there(child, rows, claimed_at)]
        if join.result["echo"] != expected:
            words = f"{_named(join)} has {join.result['echo']!r}, and the results in their order are {expected!r}"
            yield Violation(EXPANDED_WRONGLY, words, join.task_id, claimed_at)


def _is_there(child: TaskOfAWorkflow | None, rows: Rows, moment: float) -> bool:
    """A join that waits for any end begins when the list has failed; it may live again, and become tasks, later."""
    return child is None or not any(event.at > moment for event in _submits(rows, child.task_id))


def _result_at(child: TaskOfAWorkflow | None, rows: Rows, moment: float) -> Any:
    if child is None or child.status != "completed":
        return None
    completed_at = min(event.at for event in rows.events[child.task_id] if event.type == "complete")
    return child.result if completed_at <= moment else None


# 15


def decided_twice(record: Record, rows: Rows, workflows: WorkflowRows) -> Iterator[Violation]:
    """Once for each time that somebody was asked, never again when it was approved, and nothing starts without."""
    granted = Counter(call.about for call in record.workflows.calls if call.kind in DECISIONS and call.status == 200)
    for task in workflows.tasks.values():
        if not task.is_asked_about:
            continue
        open_questions = decisions = 0
        is_approved = False
        for event in rows.events.get(task.task_id, ()):
            if event.type == "ask":
                open_questions = 1
            elif event.type in DECISIONS:
                if is_approved or not open_questions:
                    words = f"{_named(task)} was decided about again by `{event.type}` (seq {event.seq})"
                    yield Violation(DECIDED_TWICE, words, task.task_id, event.at)
                decisions, open_questions = decisions + 1, 0
                is_approved = is_approved or event.type == "approve"
            elif event.type == "claim" and not is_approved:
                words = f"{_named(task)} was claimed, and nobody had approved of it (seq {event.seq})"
                yield Violation(DECIDED_TWICE, words, task.task_id, event.at)
        if granted[task.task_id] > decisions:
            words = f"{granted[task.task_id]} people were told that they had decided about {_named(task)}"
            yield Violation(DECIDED_TWICE, f"{words}, and {decisions} had", task.task_id)


# 16


def not_what_tasks_say(record: Record, rows: Rows, workflows: WorkflowRows) -> Iterator[Violation]:
    known = {workflow.workflow_id for workflow in workflows.workflows}
    for workflow_id in record.workflows.made:
        if workflow_id not in known:
            yield Violation(NOT_WHAT_TASKS_SAY, f"workflow {workflow_id} was accepted, and there is no such row")
    for workflow_id, at, words in workflows.mismatches:
        yield Violation(NOT_WHAT_TASKS_SAY, f"at a commit workflow {workflow_id} {words}", None, at)
    for workflow in workflows.workflows:
        if workflow.differs is not None:
            words = f"in the end workflow {workflow.workflow_id} {workflow.differs}"
            yield Violation(NOT_WHAT_TASKS_SAY, words, None, rows.at)
        if workflow.status not in ENDED:
            words = f"workflow {workflow.workflow_id} is still {workflow.status}"
            yield Violation(NOT_WHAT_TASKS_SAY, words, None, rows.at)
    if workflows.pending:
        words = f"{workflows.pending} rows of workflows are left in the outbox"
        yield Violation(NOT_WHAT_TASKS_SAY, words, None, rows.at)


def _named(task: TaskOfAWorkflow) -> str:
    return f"task {task.task_id} ({task.key or 'which joined'}) of workflow {task.workflow_id}"

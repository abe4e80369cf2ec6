"""Workflows, their tasks and questions as people read them."""

from collections import defaultdict

from windlass import Asked, Workflow, WorkflowCounts, WorkflowNode
from windlass.services.cli.display.tables import Facts, Table
from windlass.services.cli.display.texts import age, clean, known, moment


def workflows_table(workflows: tuple[Workflow, ...], empty: str, note: str | None) -> Table:
    rows = [
        (
            each.workflow_id, each.status, str(each.counts.live), str(each.counts.completed), str(each.counts.dead),
            str(each.counts.cancelled), age(each.created_at), known(each.name),
        )
        for each in workflows
    ]  # fmt: skip
    columns = ("WORKFLOW", "STATUS", "LIVE", "COMPLETED", "DEAD", "CANCELLED", "AGE", "NAME")
    return Table(columns, rows, empty, wide=frozenset({"NAME"}), note=note, least=("CANCELLED", "AGE"))


def workflow_facts(workflow: Workflow) -> Facts:
    waits = waits_of(workflow)
    return Facts(
        [
            ("workflow", workflow.workflow_id),
            ("name", known(workflow.name)),
            ("status", workflow.status),
            ("tasks", counted(workflow.counts)),
            ("failures", failed(workflow)),
            ("cancel requested", "yes" if workflow.cancel_requested else ""),
            *(("task", line) for each in workflow.nodes for line in node_lines(each, waits)),
            ("tags", known(workflow.tags)),
            ("user_id", known(workflow.user_id)),
            ("created_at", known(workflow.created_at)),
            ("completed_at", known(workflow.completed_at)),
        ]
    )


def node_lines(node: WorkflowNode, waits: dict[str, list[str]]) -> list[str]:
    """`draft completed 01a1…, after fetch`; the tasks for the elements of a list stand below what stands for them."""
    name = node.key or node.task_id or ""
    after = f", after {', '.join(waits[name])}" if waits[name] else ""
    why = f": {clean(f'{node.error.type}: {node.error.message}')}" if node.error is not None else ""
    what = node.task_id or f"for each of {len(node.children or ())}"
    children = [f"{clean(each.key)} {each.status} {each.task_id}" for each in node.children or ()]
    return [f"{clean(name)} {node.status} {what}{after}{why}", *children]


def waits_of(workflow: Workflow) -> dict[str, list[str]]:
    waits: defaultdict[str, list[str]] = defaultdict(list)
    for edge in workflow.edges:
        waits[edge.to].append(clean(edge.from_) + (" (in any way)" if edge.on == "ended" else ""))
    return waits


def standing(workflow: Workflow) -> str:
    """How a workflow is, in one line."""
    failures = failed(workflow)
    return f"{workflow.status}  {counted(workflow.counts)}" + (f"; failures: {failures}" if failures else "")


def failed(workflow: Workflow) -> str:
    if not workflow.failures and workflow.failure_threshold is None:
        return ""
    of = "" if workflow.failure_threshold is None else f", {workflow.failure_threshold} stop it"
    return f"{workflow.failures}{of}"


def counted(counts: WorkflowCounts) -> str:
    states = ("live", "completed", "dead", "cancelled")
    return ", ".join(f"{number} {state}" for state in states if (number := getattr(counts, state))) or "none"


def approvals_table(asked: tuple[Asked, ...], note: str | None) -> Table:
    rows = [
        (
            each.task_id,
            age(each.since),
            moment(each.expires_at),
            known(each.workflow_id),
            known(each.key),
            known(each.message),
        )
        for each in asked
    ]
    columns = ("TASK", "WAITING", "EXPIRES", "WORKFLOW", "KEY", "MESSAGE")
    return Table(
        columns,
        rows,
        "nothing waits for your word",
        wide=frozenset({"MESSAGE"}),
        note=note,
        least=("WORKFLOW", "EXPIRES"),
    )


def how_it_goes_on(workflow_id: str) -> str:
    return f"nothing of it starts until somebody says: windlass workflows resume {workflow_id}, or cancel"

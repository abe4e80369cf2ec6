"""A workflow as it goes out: its counts, its nodes and its edges, by their keys."""

import re
from collections import defaultdict
from typing import Any
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.store.rows import WorkflowRow
from windlass.shared.store.workflows import reading

SHOWN = (
    "workflow_id", "name", "status", "user_id", "tags", "failure_threshold", "failures", "cancel_requested",
    "schedule_id", "created_at", "updated_at", "completed_at",
)  # fmt: skip
COUNTED = ("total", "live", "completed", "dead", "cancelled")

OF_AN_ELEMENT = re.compile(r"(.+)\[(\d+)\]")


def head_document(row: WorkflowRow) -> dict[str, Any]:
    """Without its nodes, as in a list."""
    return {**{name: row[name] for name in SHOWN}, "counts": {name: row[name] for name in COUNTED}}


async def whole_document(db: Database, row: WorkflowRow) -> dict[str, Any]:
    tasks = await reading.tasks_of(db, row.workflow_id)
    nodes = await reading.nodes_of(db, row.workflow_id) if row.has_nodes else []
    children: defaultdict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
    shown: list[tuple[UUID, dict[str, Any]]] = []
    names: dict[UUID, str] = {}
    for task in tasks:
        document: dict[str, Any] = {"key": task.workflow_key, "task_id": task.task_id, "status": task.status}
        of = OF_AN_ELEMENT.fullmatch(task.workflow_key or "")
        if of is not None:
            children[of[1]][int(of[2])] = document
        else:
            shown.append((task.task_id, document))
            names[task.task_id] = task.workflow_key or str(task.task_id)
    for node in nodes:
        names[node.node_id] = node.key
        error = None if node.error is None else {"type": node.error["type"], "message": node.error["message"]}
        document = {
            "key": node.key,
            "task_id": None,
            "status": node.status,
            "children": [child for _, child in sorted(children[node.key].items())],
        }
        shown.append((node.node_id, {**document, **({} if error is None else {"error": error})}))
    edges = [
        {"from": names.get(edge.parent_id, str(edge.parent_id)), "to": names[edge.child_id], "on": edge.met_on}
        for edge in await reading.edges_of(db, list(names))
    ]
    for node in nodes:
        for each in node.waits_for:
            met_on = "ended" if each in node.after_end else "completed"
            edges.append({"from": names.get(UUID(each), each), "to": node.key, "on": met_on})
        edges.append({"from": names.get(node.source, str(node.source)), "to": node.key, "on": "completed"})
    in_order = [document for _, document in sorted(shown, key=lambda each: each[0])]
    return {**head_document(row), "nodes": in_order, "edges": edges}

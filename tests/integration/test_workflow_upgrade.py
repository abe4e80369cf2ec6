"""Workflows of the edition before the outbox: groups, failures and barriers are made of what it kept."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

import pytest
from uuid_utils.compat import uuid7

from tests.conftest import a_database
from tests.integration.test_supported_schema import bring_to
from tests.support.engine.schedules import HOUR, NOON, Schedule, a_workflow
from tests.support.engine.store import Engine, an_engine
from tests.support.engine.workflows import AWorkflow, in_a_workflow
from tests.support.servers.databases import ask
from tests.support.servers.private_servers import Servers
from windlass.shared.db import as_json
from windlass.shared.features.workflows import operations
from windlass.shared.migrations.runner import migrate
from windlass.shared.store.workflows import reading

BEFORE = "0036"
FAILED = '{"type": "Busy", "kind": "permanent", "message": "no", "attempt": 1}'
DEAD = {"status": "dead", "error": FAILED, "completed_at": NOON}
COMPLETED = {"status": "completed", "completed_at": NOON}
BLOCKED = {"status": "blocked", "unmet": 1}

TASKS: dict[str, dict[str, Any]] = {
    "split": {**COMPLETED, "result": '{"parts": ["a", "b"]}'},
    "pages[0]": COMPLETED,
    "pages[1]": {},
    "join": BLOCKED,
    "list": {},
    "after": BLOCKED,
    "counted": DEAD,
    "revived": {"life": 2},
    "untold": {**DEAD, "life": 3},
}
"""`untold` has failed, and the workflow could not count it yet. `revived` failed in its first life."""


def as_before(submission: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A submission as that edition stored it."""
    without = {"task_id", "group_id"} if "task_id" not in fields else {"group_id"}
    return {**{name: value for name, value in submission.items() if name not in without}, "level": 2, **fields}


def insert(url: str, table: str, **row: Any) -> None:
    places = ", ".join(f"${number}" for number, _ in enumerate(row, start=1))
    ask(url, f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", *row.values())


def a_task(url: str, workflow_id: UUID, key: str, **fields: Any) -> UUID:
    task_id = uuid7()
    insert(
        url, "tasks", task_id=task_id, actor="probe", provider="probe", user_id="ann", timeout_seconds=60.0,
        max_retries=0, workflow_id=str(workflow_id), workflow_key=key, concerns=2, **{"status": "queued", **fields},
    )  # fmt: skip
    return task_id


def a_workflow_before(url: str, **fields: Any) -> UUID:
    workflow_id = uuid7()
    insert(url, "workflows", workflow_id=workflow_id, user_id="ann", name="report", **fields)
    ask(url, "INSERT INTO workflow_events (workflow_id, seq, type) VALUES ($1, 1, 'submit')", workflow_id)
    return workflow_id


def fill(url: str) -> tuple[UUID, dict[str, UUID], dict[str, UUID]]:
    """A workflow in the middle of its work. `pages` is in its fan-out, and `more` waits for its list."""
    insert(url, "providers", name="probe", actor="probe")
    counts = {"total": 11, "live": 8, "completed": 2, "dead": 1}
    flow = a_workflow_before(url, failure_threshold=5, failures=2, has_nodes=True, **counts)
    ids = {key: a_task(url, flow, key, **fields) for key, fields in TASKS.items()}
    nodes = {key: uuid7() for key in ("pages", "more")}
    template = as_before(json.loads(as_json(in_a_workflow(flow, user_id="ann", max_retries=0))))
    ask(
        url,
        "INSERT INTO workflow_nodes (node_id, workflow_id, key, source, path, template, children, live, completed,"
        " expanded_at) SELECT $1, $2, 'pages', $3, '/parts', $4, 2, 1, 1, now()",
        nodes["pages"], flow, ids["split"], json.dumps(template),
    )  # fmt: skip
    more = {**template, "depends_on_nodes": [str(nodes["pages"])]}
    insert(
        url, "workflow_nodes", node_id=nodes["more"], workflow_id=flow, key="more", source=ids["list"],
        template=json.dumps(more),
    )  # fmt: skip
    for child, node in (("join", "pages"), ("after", "more")):
        insert(url, "task_dependencies", parent_id=nodes[node], child_id=ids[child], by_node=True)
    ask(
        url,
        "INSERT INTO untold (subject, task_id, seq, move, error) VALUES ('workflow', $1, 3, '{}', 'refused')",
        ids["untold"],
    )
    return flow, ids, nodes


def a_schedule_before(url: str) -> UUID:
    """It starts a workflow with a node, and one of its due times waits with a workflow of its own."""
    schedule_id = uuid4()
    insert(
        url, "schedules", schedule_id=schedule_id, user_id="ann", name="nightly", cron="0 * * * *", kind="workflow",
        prepared=json.dumps(prepared_before()), overlap="allow", catch_up="latest", catch_up_window_seconds=3600.0,
        jitter_seconds=0.0, anchor_at=NOON, last_due_at=NOON, next_due_at=NOON + HOUR, next_at=NOON + HOUR,
    )  # fmt: skip
    insert(
        url, "schedule_runs", schedule_id=uuid4(), due_at=NOON, outcome="waiting", cause="time",
        start=json.dumps(prepared_before()),
    )  # fmt: skip
    return schedule_id


def prepared_before() -> dict[str, Any]:
    document = a_workflow()
    first, second = document["submissions"]
    node = {
        "node_id": str(uuid7()), "key": "each", "source": first["task_id"], "source_is_node": False, "path": "",
        "template": as_before(second, workflow_key=None, depends_on=[]),
    }  # fmt: skip
    join = as_before(
        second, task_id=str(uuid7()), workflow_key="join", depends_on=[], depends_on_nodes=[node["node_id"]]
    )
    submissions = [as_before(each, task_id=each["task_id"]) for each in (first, second)]
    return {**document, "nodes": [node], "submissions": [*submissions, join]}


@pytest.mark.parametrize("column", ["prepared of schedules", "start of schedule_runs"])
def test_workflows_that_schedules_will_start_name_their_group(servers: Servers, column: str) -> None:
    name, table = column.split(" of ")
    with a_database(servers, "template1") as url:
        asyncio.run(bring_to(url, BEFORE, with_functions=False))
        a_schedule_before(url)
        asyncio.run(migrate(url))
        ((document,),) = ask(url, f"SELECT {name} FROM {table}")
    prepared = json.loads(document)
    (node,) = prepared["nodes"]
    for each in [*prepared["submissions"], node["template"]]:
        assert each["group_id"] == prepared["workflow"]["workflow_id"]
        assert each.keys().isdisjoint({"level", "depends_on_nodes"})
    assert [each["workflow_key"] for each in prepared["submissions"]] == ["first", "second", "join"]
    assert prepared["submissions"][2]["depends_on_barriers"] == [node["node_id"]]


def test_a_workflow_under_way_is_migrated_and_finished(servers: Servers) -> None:
    with a_database(servers, "template1") as url:
        asyncio.run(bring_to(url, BEFORE, with_functions=False))
        flow, ids, nodes = fill(url)
        over = a_workflow_before(url)
        given_up = a_workflow_before(url, cancel_requested=True)
        schedule_id = a_schedule_before(url)
        asyncio.run(migrate(url))

        groups = ask(url, "SELECT group_id, is_closed, failure_limit FROM task_groups")
        assert {tuple(row) for row in groups} == {(flow, False, 5), (over, False, None), (given_up, True, None)}
        failures = {(row["task_id"], row["life"]) for row in ask(url, "SELECT * FROM group_failures")}
        assert len(failures) == 2 + 1, "those that were counted, and the one that was not"
        assert failures > {(ids["counted"], 1), (ids["untold"], 3)}
        barriers = ask(url, "SELECT barrier_id, group_id, key, status, members, source, path FROM barriers")
        assert {tuple(row) for row in barriers} == {
            (nodes["pages"], flow, "pages", "running", 2, ids["split"], "/parts"),
            (nodes["more"], flow, "more", "blocked", None, ids["list"], ""),
        }
        marks = ask(url, "SELECT feature, subject, move FROM outbox")
        assert [tuple(row) for row in marks] == [("workflow", flow, "migrate")], "of workflows that are not over"
        rows = ask(url, "SELECT node_id, template FROM workflow_nodes")
        check_templates({row["node_id"]: json.loads(row["template"]) for row in rows}, flow, nodes)

        async def go_on() -> None:
            async with an_engine(url) as engine:
                await finish(AWorkflow(engine, flow, ids, {}), engine)
                await start_from(Schedule(engine, schedule_id, NOON))

        asyncio.run(go_on())


def check_templates(templates: Mapping[UUID, dict[str, Any]], flow: UUID, nodes: Mapping[str, UUID]) -> None:
    assert templates.keys() == set(nodes.values())
    for template in templates.values():
        assert template["group_id"] == str(flow)
        assert template.keys().isdisjoint({"level", "depends_on_nodes"})
    assert templates[nodes["more"]]["depends_on_barriers"] == [str(nodes["pages"])]


async def finish(flow: AWorkflow, engine: Engine) -> None:
    """As workers and the orchestrator do."""
    row = await flow.row()
    assert (row.status, row.failures, row.total, row.live, row.dead) == ("running", 3, 11, 7, 2)
    for key in ("list", "pages[1]", "revived"):
        await flow.finish(key, result=["x"])
    await flow.janitor()
    for key in ("join", "more[0]"):
        await flow.finish(key)
    await flow.janitor()
    await flow.finish("after")
    row = await flow.row()
    assert (row.status, row.failures, row.total, row.completed, row.dead) == ("failed", 3, 12, 10, 2)
    assert await operations.count_drift(engine.pool) == []


async def start_from(schedule: Schedule) -> None:
    engine = schedule.engine
    await engine.sql("INSERT INTO api_keys (key_id, secret_hash, role, user_id) VALUES ('ann', '', 'user', 'ann')")
    assert [each.outcome for each in await schedule.after(HOUR)] == ["started"]
    workflow_id = (await schedule.last()).workflow_id
    assert workflow_id is not None
    groups = "SELECT DISTINCT group_id FROM tasks WHERE workflow_id = $1"
    assert [row[0] for row in await engine.pool.fetch(groups, str(workflow_id))] == [workflow_id]
    own = {row.workflow_key: row.task_id for row in await reading.tasks_of(engine.pool, workflow_id)}
    started = AWorkflow(engine, workflow_id, {str(key): task_id for key, task_id in own.items()}, {})
    await started.finish("first", result=[1, 2])
    await started.janitor()
    for key in ("second", "each[0]", "each[1]"):
        await started.finish(key)
    await started.janitor()
    await started.finish("join")
    assert await started.status() == "completed"

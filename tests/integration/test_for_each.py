"""One task for each element of a list: submitted once, also if a process dies meanwhile, and joined by one edge."""

import asyncio
from typing import Any

import pytest

from tests.support.engine.pauses import kill_who_waits, paused
from tests.support.engine.store import RULES, Engine, an_ending, on_the_engine
from tests.support.engine.workflows import AWorkflow, a_workflow, compared, relay_all, tidy_up
from windlass.services.api.access.auth import Caller
from windlass.shared import db
from windlass.shared.concerns import Concern
from windlass.shared.concurrency_keys import key_of
from windlass.shared.features.workflows import operations
from windlass.shared.features.workflows.operations import Resumption
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.tasks import Claim, Claimed
from windlass.shared.store.workflows import inputs
from windlass.shared.store.workflows.submitting import submit
from windlass.shared.submission.known import built_in_actors
from windlass.shared.submission.refusal import Refused
from windlass.shared.submission.workflows import workflow_of

REFERS = Concern.REFERENCES.value
GRAPH = {"split": [], "pages": ["split"], "join": ["pages"]}
EACH = {"pages": ("split", "/parts")}
PAYLOAD: dict[str, dict[str, Any]] = {
    "pages": {"concerns": REFERS, "payload": {"result": {"$item": True}, "steps": {"$index": True}}},
    "join": {"concerns": REFERS, "payload": {"result": {"$from": "pages"}}},
}


async def split(engine: Engine, parts: Any, **options: Any) -> AWorkflow:
    flow = await a_workflow(engine, GRAPH, for_each=EACH, fields=PAYLOAD, **options)
    await flow.finish("split", result={"parts": parts})
    return flow


async def input_of(engine: Engine, flow: AWorkflow, key: str) -> Any:
    return (await inputs.resolve(engine.pool, await flow.task(key), largest_bytes=8_000_000)).input


@on_the_engine
async def test_a_list_becomes_one_task_for_each_and_their_results_come_in_order(engine: Engine) -> None:
    async with compared(engine):
        flow = await split(engine, ["a", {"b": 1}, None])
        assert await engine.count("workflow_key LIKE 'pages[%'") == 0, "the end of the list submits nothing"
        await flow.janitor()
        assert (await flow.row()).live == 5, "the node counts besides its tasks"
        children = {"pages[0]": "queued", "pages[1]": "queued", "pages[2]": "queued"}
        assert await flow.statuses() == {"split": "completed", "pages": "running", "join": "blocked", **children}
        assert await input_of(engine, flow, "pages[1]") == {"result": {"b": 1}, "steps": 1}
        edges = await engine.pool.fetch("SELECT * FROM task_dependencies WHERE child_id = $1", flow.ids["join"])
        assert [row["parent_id"] for row in edges] == [flow.nodes["pages"]], "one edge"
        for key in ("pages[2]", "pages[0]"):
            await flow.finish(key, result=key)
        assert (await flow.statuses())["join"] == "blocked"
        await flow.finish("pages[1]", result="pages[1]")
        assert (await flow.statuses())["join"] == "queued"
        assert await input_of(engine, flow, "join") == {"result": ["pages[0]", "pages[1]", "pages[2]"]}
        await flow.finish("join")
        row = await flow.row()
        assert (row.status, row.total, row.completed) == ("completed", 6, 6)
        assert await operations.count_drift(engine.pool) == []


@on_the_engine
async def test_of_several_turns_at_once_one_expands(engine: Engine) -> None:
    flow = await split(engine, list(range(20)))
    locked = "SELECT 1 FROM workflows WHERE workflow_id = $1 FOR NO KEY UPDATE"
    await engine.be_connected(5)
    async with asyncio.TaskGroup() as all_of_them, engine.holding(locked, flow.workflow_id):
        for _ in range(4):
            all_of_them.create_task(operations.settle(engine.pool, flow.workflow_id))
        await engine.until_waiting(4)
    assert (await flow.row()).total == 3 + 20
    assert await engine.count("workflow_key LIKE 'pages[%'") == 20


@on_the_engine
async def test_a_killed_expansion_leaves_nothing_behind_and_the_next_turn_expands(engine: Engine) -> None:
    async with compared(engine):
        flow = await split(engine, list(range(20)))
        async with paused(engine, "AFTER INSERT ON tasks"):
            expanding = asyncio.create_task(operations.settle(engine.pool, flow.workflow_id))
            await engine.until_waiting(1)
            await kill_who_waits(engine)
            with pytest.raises(db.UNAVAILABLE):
                await expanding
        assert await engine.count("workflow_key LIKE 'pages[%'") == 0
        assert await relay_all(engine)
        assert not await relay_all(engine)
        assert (await flow.row()).total == 3 + 20
        assert await engine.count("workflow_key LIKE 'pages[%'") == 20


@on_the_engine
async def test_an_empty_list_completes_at_once(engine: Engine) -> None:
    async with compared(engine):
        flow = await split(engine, [])
        await flow.janitor()
        assert await flow.statuses() == {"split": "completed", "pages": "completed", "join": "queued"}
        assert await input_of(engine, flow, "join") == {"result": []}


@on_the_engine
async def test_a_list_that_is_none_or_too_long_fails_the_node_once(engine: Engine) -> None:
    async with compared(engine):
        for parts in ("no list", list(range(1001))):
            flow = await split(engine, parts)
            await flow.janitor()
            await flow.janitor()
            row = await flow.row()
            assert await flow.statuses() == {"split": "completed", "pages": "dead", "join": "dead"}
            assert (row.status, row.failures, row.dead) == ("failed", 1, 2)


@on_the_engine
async def test_a_source_that_fails_buries_the_node_and_its_revival_brings_it_back(engine: Engine) -> None:
    async with compared(engine):
        flow = await a_workflow(engine, GRAPH, for_each=EACH)
        await flow.finish("split", "bury")
        assert await flow.statuses() == {"split": "dead", "pages": "dead", "join": "dead"}
        assert (await flow.row()).failures == 1
        await engine.revive(flow.ids["split"])
        await flow.janitor()
        assert await flow.statuses() == {"split": "queued", "pages": "blocked", "join": "blocked"}
        assert await flow.status() == "running"


@on_the_engine
async def test_a_child_that_fails_fails_the_node_and_a_revival_goes_on(engine: Engine) -> None:
    async with compared(engine):
        flow = await split(engine, [1, 2])
        await flow.janitor()
        await flow.finish("pages[0]", "bury")
        assert (await flow.statuses())["join"] == "blocked", "the other still runs"
        await flow.finish("pages[1]")
        assert (await flow.statuses())["join"] == "dead"
        assert await flow.status() == "failed"
        await engine.revive(await flow.task("pages[0]"))
        await flow.janitor()
        statuses = await flow.statuses()
        assert (statuses["pages"], statuses["join"]) == ("running", "blocked")
        await flow.finish("pages[0]")
        await flow.janitor()
        await flow.finish("join")
        assert await flow.status() == "completed"


@on_the_engine
async def test_who_waits_for_any_end_of_them_gets_null_for_who_has_no_result(engine: Engine) -> None:
    async with compared(engine):
        flow = await a_workflow(engine, GRAPH, for_each=EACH, fields=PAYLOAD, after_end={"join": ["pages"]})
        await flow.finish("split", result={"parts": [1, 2]})
        await flow.janitor()
        await flow.finish("pages[0]", "bury")
        assert (await flow.statuses())["join"] == "blocked"
        await flow.finish("pages[1]", result="second")
        statuses = await flow.statuses()
        assert (statuses["pages"], statuses["join"]) == ("dead", "queued")
        assert await input_of(engine, flow, "join") == {"result": [None, "second"]}


@on_the_engine
async def test_children_are_born_held_and_a_cancelled_node_makes_none(engine: Engine) -> None:
    async with compared(engine):
        graph = {"bad": [], **GRAPH}
        flow = await a_workflow(engine, graph, for_each=EACH, failure_threshold=1)
        running = await flow.start("split")
        await flow.finish("bad", "bury")
        await engine.finish(running, result={"parts": [1, 2]})
        await flow.janitor()
        assert await flow.held() == {"pages[0]", "pages[1]", "join"}
        await operations.resume(engine.pool, flow.workflow_id, Resumption.NONE)
        assert await flow.held() == set()

        given_up = await split(engine, [1, 2])
        await operations.cancel(engine.pool, given_up.workflow_id)
        await given_up.janitor()
        assert await given_up.statuses() == {"split": "completed", "pages": "cancelled", "join": "cancelled"}
        assert await given_up.status() == "cancelled"


@on_the_engine
async def test_a_fan_out_of_a_thousand_and_its_join(engine: Engine) -> None:
    flow = await split(engine, list(range(1000)))
    await flow.janitor()
    ids = [await flow.task("join"), *(each for each in await children(engine, flow))]
    claims = [Claim(each, each) for each in ids[1:]]
    granted = [each for each in await tasks.claim(engine.pool, "w", claims, 60) if isinstance(each, Claimed)]
    assert len(granted) == 1000
    for at in range(0, 1000, 200):
        endings = [an_ending(each, "complete", result=each.attempt) for each in granted[at : at + 200]]
        await tasks.end(engine.pool, endings, RULES)
    assert (await flow.statuses())["join"] == "queued"
    assert await input_of(engine, flow, "join") == {"result": [1] * 1000}
    assert (await flow.row()).completed == 1002
    assert await operations.count_drift(engine.pool) == []


async def children(engine: Engine, flow: AWorkflow) -> list[Any]:
    rows = await engine.pool.fetch(
        "SELECT task_id FROM tasks WHERE workflow_id = $1 AND workflow_key LIKE 'pages[%'", str(flow.workflow_id)
    )
    return [row["task_id"] for row in rows]


def keyed_by(*pointers: str) -> Settings:
    return Settings.model_validate({"actors": {"probe": {"concurrency": {"key": list(pointers), "limit": 1}}}})


async def expanded(engine: Engine, settings: Settings, parts: list[Any], payload: dict[str, Any]) -> dict[str, Any]:
    """A workflow as it comes over REST, with the keys of its tasks."""
    task = {"key": "pages", "actor": "probe", "payload": payload, "for_each": {"$from": "split", "path": "/parts"}}
    body = {"name": "report", "tasks": [{"key": "split", "actor": "probe"}, task]}
    wanted = workflow_of(body, Caller("u", "user", "ann"), settings, built_in_actors())
    await submit(engine.pool, wanted.workflow, wanted.nodes, wanted.submissions)
    await engine.finish(await engine.start(wanted.submissions[0].task_id), "complete", result={"parts": parts})
    await tidy_up(engine)
    rows = await engine.pool.fetch(
        "SELECT workflow_key, concurrency_key FROM tasks WHERE workflow_id = $1", str(wanted.workflow.workflow_id)
    )
    return {row["workflow_key"]: row["concurrency_key"] for row in rows}


@on_the_engine
async def test_the_tasks_of_a_list_have_the_concurrency_keys_of_their_elements(engine: Engine) -> None:
    accounts = ["a", {"b": 1.5, "a": ["x", {"é\n": None}]}, [], 7, True, None]
    parts = [{"account": each} for each in accounts] + [{}]
    payloads: list[tuple[Settings, dict[str, Any]]] = [
        (keyed_by("/result/account"), {"result": {"$item": True}}),
        (keyed_by("/result/account", "/outcome"), {"result": {"account": {"$item": True, "path": "/account"}}}),
    ]
    for settings, payload in payloads:
        keys = await expanded(engine, settings, parts, payload)
        pointers = settings.actors["probe"].concurrency.key  # type: ignore[union-attr]
        schema = built_in_actors()["probe"].definition.payload_schema
        assert [keys[f"pages[{n}]"] for n in range(len(parts))] == [
            key_of({"result": each}, pointers, schema) for each in parts
        ]


@on_the_engine
async def test_a_key_that_is_too_long_fails_the_node(engine: Engine) -> None:
    assert await expanded(engine, keyed_by("/result"), ["a", "x" * 256], {"result": {"$item": True}}) == {"split": None}
    (node,) = await engine.pool.fetch(
        "SELECT b.status, n.error FROM workflow_nodes n JOIN barriers b ON b.barrier_id = n.node_id"
    )
    assert (node["status"], node["error"]["message"]) == (
        "dead",
        "/for_each: the concurrency key of element 1 has 256 characters, and 255 are the most",
    )


@on_the_engine
async def test_a_key_that_is_another_task_s_result_is_still_refused(engine: Engine) -> None:
    with pytest.raises(Refused) as refused:
        await expanded(engine, keyed_by("/result"), [], {"result": {"$text": [{"$from": "split", "path": "/parts"}]}})
    assert [each.pointer for each in refused.value.wrong] == ["/tasks/1/payload/result"]

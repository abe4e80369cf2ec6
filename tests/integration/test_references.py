"""References to results: cut out in Postgres when they are wanted, and named where they lead nowhere."""

import re
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.support.engine.attempting import Worker, a_worker
from tests.support.engine.store import Engine, empty_database, on_the_engine
from tests.support.engine.store_from_threads import ask
from tests.support.engine.workflows import a_workflow
from tests.support.servers.private_servers import Servers
from windlass.actors import actor
from windlass.actors.payload import payload_of
from windlass.services.actors import making
from windlass.services.actors.worker.context.inputs import take_input
from windlass.shared.actors.attempt.waits import at_once
from windlass.shared.actors.definition import Definition
from windlass.shared.actors.loading import Loaded, LoadedActor
from windlass.shared.concerns import Concern
from windlass.shared.errors import InvalidInput
from windlass.shared.store.workflows import inputs
from windlass.shared.store.workflows.inputs import Resolved

REFERS = {"concerns": Concern.REFERENCES.value}


async def resolved(engine: Engine, task_id: UUID, largest_bytes: int = 8_000_000) -> Resolved:
    return await inputs.resolve(engine.pool, task_id, largest_bytes=largest_bytes)


@on_the_engine
async def test_each_kind_of_reference(engine: Engine) -> None:
    result = {"summary": "short", "parts": [{"a/b": 1}, None], "number": 3, "~": True}
    attempt = await engine.running()
    await engine.finish(attempt, result=result)
    name = str(attempt.task_id)
    cases: list[tuple[Any, Any]] = [
        ({"$from": name}, result),
        ({"$from": name, "path": ""}, result),
        ({"$from": name, "path": "/summary"}, "short"),
        ({"$from": name, "path": "/parts/0/a~1b"}, 1),
        ({"$from": name, "path": "/~0"}, True),
        ({"$from": name, "path": "/parts/1"}, None),
        ({"$from": name, "path": "/nothing", "default": [1]}, [1]),
        ({"$from": name, "path": "/parts/-1", "default": "no"}, "no"),
        ({"$from": name, "path": "/parts/01", "default": "no"}, "no"),
        ({"$text": ["It says: ", {"$from": name, "path": "/summary"}, "; ", {"$from": name, "path": "/number"}]},
         "It says: short; 3"),
        ({"$literal": {"$from": "nobody"}}, {"$from": "nobody"}),
        ([{"deep": {"$from": name, "path": "/number"}}], [{"deep": 3}]),
        ({}, {}),
        ([], []),
    ]  # fmt: skip
    for value, expected in cases:
        task = await engine.submit(depends_on=[attempt.task_id], payload={"value": value, "kept": 1}, **REFERS)
        found = await resolved(engine, task)
        assert found.input == {"value": expected, "kept": 1}, value
        assert (await engine.row(task)).payload["value"] == value, "it is stored as it was submitted"


@on_the_engine
async def test_what_leads_nowhere_is_named_by_its_pointer(engine: Engine) -> None:
    attempt = await engine.running()
    await engine.finish(attempt, result={"summary": "short"})
    stranger = await engine.completed()
    for reference in (
        {"$from": str(attempt.task_id), "path": "/nothing"},
        {"$from": str(stranger)},
        {"$from": "draft"},
    ):
        task = await engine.submit(depends_on=[attempt.task_id], payload={"a/b": [0, reference]}, **REFERS)
        found = await resolved(engine, task)
        assert (found.input, found.pointer) == (None, "/a~1b/1")
        assert found.problem


@on_the_engine
async def test_large_results_flow_and_are_copied_nowhere_and_all_has_a_cap(engine: Engine) -> None:
    attempt = await engine.running()
    await engine.finish(attempt, result={"text": "x" * 4_900_000, "title": "long"})
    whole = await engine.submit(
        depends_on=[attempt.task_id], payload={"all": {"$from": str(attempt.task_id)}}, **REFERS
    )
    found = await resolved(engine, whole)
    assert found.input is not None
    assert len(found.input["all"]["text"]) == 4_900_000
    assert len(str((await engine.row(whole)).payload)) < 200
    small = await resolved(engine, whole, largest_bytes=1000)
    assert (small.input, small.pointer) == (None, "/all")
    twice = await engine.submit(
        depends_on=[attempt.task_id],
        payload={"a": {"$from": str(attempt.task_id)}, "b": {"$from": str(attempt.task_id)}},
        **REFERS,
    )
    assert (await resolved(engine, twice)).input is None


def peak_kilobytes(pid: int) -> int:
    """How much memory a process has had at most, shared buffers included."""
    return int(re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc", str(pid), "status").read_text())[0])


@pytest.mark.parametrize("shape", ["text", "list", "object", "one list in another"])
def test_what_is_too_large_is_refused_before_it_is_built(servers: Servers, migrated_template: str, shape: str) -> None:
    """Two hundred references to 5 MB are 1 GB, from a payload of 20 KB."""

    async def refuse(engine: Engine) -> None:
        attempt = await engine.running()
        await engine.finish(attempt, result={"text": "x" * 4_900_000})
        all_of_them = [{"$from": str(attempt.task_id), "path": "/text"} for _ in range(200)]
        value: Any = {
            "text": {"$text": all_of_them},
            "list": all_of_them,
            "object": {str(number): each for number, each in enumerate(all_of_them)},
            "one list in another": [[each] for each in all_of_them],
        }[shape]
        task = await engine.submit(depends_on=[attempt.task_id], payload={"value": value}, **REFERS)
        async with engine.pool.acquire() as connection:
            found = await inputs.resolve(connection, task, largest_bytes=8_000_000)
            peak = peak_kilobytes(await connection.fetchval("SELECT pg_backend_pid()"))
        assert found.input is None
        place = {"text": "/value/$text/1", "one list in another": "/value/1/0"}.get(shape, "/value/1")
        assert (found.pointer, found.problem) == (
            place,
            "with the results that it refers to, the payload has more than 8000000 bytes",
        )
        assert peak < 300_000

    ask(empty_database(servers.database_url, migrated_template), refuse)


@pytest.mark.parametrize("kind", ["numbers", "text", "deep"])
def test_references_that_read_very_much_are_refused_for_good(
    servers: Servers, migrated_template: str, kind: str
) -> None:
    """Though they take nothing of it: a statement that ran into its time limit would be repeated for ever."""

    async def refuse(engine: Engine) -> None:
        attempt = await engine.running()
        result: Any = {"numbers": list(range(700_000)), "text": "x" * 4_900_000, "deep": "x" * 4_900_000}[kind]
        for _ in range(50 if kind == "deep" else 1):
            result = {"a": result}
        await engine.finish(attempt, result=result)
        reference = {
            "$from": str(attempt.task_id),
            "path": "/a" * 50 + "/no" if kind == "deep" else "/no",
            "default": 0,
        }
        task = await engine.submit(depends_on=[attempt.task_id], payload={"value": [reference] * 2000}, **REFERS)
        found = await resolved(engine, task)
        assert found.problem == "the references up to here read more than 1600000000 bytes of results"
        assert (found.pointer or "").startswith("/value/")
        others = [await engine.submit(depends_on=[attempt.task_id], payload={"value": [reference] * 5}, **REFERS)] * 2
        assert (await resolved(engine, others[0])).input == {"value": [0] * 5}
        together = await inputs.resolve_many(engine.pool, [*others, task, task], largest_bytes=8_000_000)
        assert set(together) == set(others), "what would take long is left for a statement of its own"

    ask(empty_database(servers.database_url, migrated_template), refuse)


@on_the_engine
async def test_nothing_is_read_of_the_results_of_a_node_where_a_path_leads_into_none(engine: Engine) -> None:
    refers = Concern.REFERENCES.value
    nowhere = {"$from": "pages", "path": "/x", "default": 0}
    flow = await a_workflow(
        engine,
        {"split": [], "pages": ["split"], "join": ["pages"], "wide": ["pages"]},
        for_each={"pages": ("split", "/parts")},
        fields={
            "pages": {"payload": {"result": {"$item": True}}, "concerns": refers},
            "join": {"payload": {"result": [nowhere] * 2000}, "concerns": refers},
            "wide": {"payload": {"result": [{"$from": "pages"}] * 2000}, "concerns": refers},
        },
    )
    await flow.finish("split", result={"parts": list(range(20))})
    await flow.janitor()
    for number in range(20):
        await flow.finish(f"pages[{number}]", result={"text": "x" * 380_000})
    assert (await resolved(engine, flow.ids["join"])).input == {"result": [0] * 2000}
    assert (await resolved(engine, flow.ids["wide"])).pointer == "/result/1"


@on_the_engine
async def test_what_is_large_stands_in_one_row_whoever_has_got_it(engine: Engine) -> None:
    """A list of 5 MB becomes one task for each of its elements; they and the join get all of it, and no table has it a
    second time."""
    refers = Concern.REFERENCES.value
    flow = await a_workflow(
        engine,
        {"split": [], "pages": ["split"], "join": ["pages", "split"]},
        for_each={"pages": ("split", "/parts")},
        fields={
            "pages": {"payload": {"result": {"$item": True}}, "concerns": refers},
            "join": {"payload": {"result": {"$from": "split"}}, "concerns": refers},
        },
    )
    mark = "a-large-part-"
    await flow.finish("split", result={"parts": [f"{mark}{number}-{'x' * 2_500_000}" for number in range(2)]})
    await flow.janitor()
    for key in ("pages[0]", "pages[1]", "join"):
        attempt = await flow.start(key)
        found = await resolved(engine, attempt.task_id)
        assert mark in str(found.input)
        await engine.finish(attempt, result={"seen": len(str(found.input))})
        await flow.janitor()
    assert await flow.status() == "completed"
    tables = await engine.pool.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    holding = {}
    for (table,) in tables:
        number = await engine.pool.fetchval(f"SELECT count(*) FROM {table} AS t WHERE t::text LIKE '%{mark}%'")
        if number:
            holding[table] = number
    assert holding == {"tasks": 1}


@actor
def repeat(text: str, times: int = 1) -> str:
    return text * times


def run(worker: Worker, payload: dict[str, str], result: Any) -> Any:
    """An attempt as every worker makes it; the payload has by field the pointer into the result of another task."""

    async def submitted(engine: Engine) -> UUID:
        source = await engine.running()
        await engine.finish(source, result=result)
        named = {field: {"$from": str(source.task_id), "path": path} for field, path in payload.items()}
        return await engine.submit(depends_on=[source.task_id], payload=named, **REFERS)

    context = worker.claim(ask(worker.engine_url, submitted))
    read = payload_of(repeat)
    definition = Definition(name="repeat", payload_schema=read.schema(), provider="probe", module="ours")
    loaded = Loaded(worker.settings, {"repeat": LoadedActor(repeat, read, definition)})
    at_once(take_input(context.asking))
    return making.make(loaded, worker.settings, ["repeat"])["repeat"].run(context)


def test_what_was_resolved_is_held_against_the_actor_s_schema(
    servers: Servers, migrated_template: str, tmp_path: Path
) -> None:
    """As strictly as what is submitted outright: the actor's own reading would make a number of a text."""
    result = {"word": "ho", "number": 3, "text": "3", "parts": [{"n": "no"}]}
    with a_worker(empty_database(servers.database_url, migrated_template), tmp_path) as worker:
        assert run(worker, {"text": "/word", "times": "/number"}, result) == "hohoho"
        for payload, pointer in (
            ({"text": "/word", "times": "/text"}, "/times"),
            ({"text": "/number"}, "/text"),
            ({"text": "/word", "times": "/parts"}, "/times"),
            ({"times": "/number"}, "/text"),
            ({"text": "/word", "other/one": "/number"}, "/other~1one"),
            ({"text": "/nothing"}, "/text"),
        ):
            with pytest.raises(InvalidInput) as caught:
                run(worker, payload, result)
            assert (caught.value.kind, caught.value.details["pointer"]) == ("permanent", pointer)
            assert f"{pointer}: " in caught.value.message


@on_the_engine
async def test_after_any_end_there_may_be_no_result(engine: Engine) -> None:
    flow = await a_workflow(
        engine,
        {"draft": [], "tell": ["draft"], "show": ["draft"]},
        after_end={"tell": ["draft"], "show": ["draft"]},
        fields={
            "tell": {"payload": {"result": {"$from": "draft", "default": "it failed"}}},
            "show": {"payload": {"result": {"$from": "draft"}}},
        },
    )
    await flow.finish("draft", "bury")
    assert (await resolved(engine, flow.ids["tell"])).input == {"result": "it failed"}
    assert (await resolved(engine, flow.ids["show"])).pointer == "/result"

"""A bad body costs little: whatever is wrong with two megabytes, the answer is small, and nothing else waits for it."""

import asyncio
import json
import random
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from tests.support.an_api import an_api
from tests.support.engine.store import an_engine
from tests.support.installation import Client, Windlass
from tests.support.process_cpu import ProcessCpu
from tests.support.servers.private_servers import Servers
from tests.support.things import Things
from windlass.services.api.main import create_app
from windlass.services.api.reference.openapi import complete
from windlass.services.api.reference.operations import OPERATIONS
from windlass.shared.settings import Settings
from windlass.shared.submission.known import built_in_actors

BODY_BYTES = 1_950_000
LARGEST_ANSWER_BYTES = 65_536
CPU_SECONDS = 0.05
"""What a refusal may cost on an idle machine; on a shared one the best of three tries may cost four times as much."""
TRIES, PATIENCE = 3, 4

THOROUGHLY = {("POST", f"/api/v1/{path}") for path in ("session", "tasks", "tasks/batch", "workflows")}
SHORTCUTS = [("POST", f"/api/v1/tasks/{actor}") for actor in built_in_actors()]
ROUTES = sorted({*((method, path) for method, path in OPERATIONS if method in {"POST", "PUT", "PATCH"}), *SHORTCUTS})
DOCUMENT = complete(create_app(Settings()).openapi_schema.to_schema(), built_in_actors(), Settings())


@pytest.fixture(scope="module")
def windlass(servers: Servers, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Windlass]:
    with an_api(servers, migrated_template, tmp_path_factory.mktemp("large")) as windlass:
        yield windlass
    assert "Traceback" not in windlass.log(), "nothing that a client sends is an error of ours"


@pytest.fixture
def client(windlass: Windlass) -> Client:
    return windlass.client


@pytest.fixture(scope="module")
def things(windlass: Windlass) -> dict[str, str]:
    """Parameters of paths. Each names something that exists: the last checks of a body come after it has been found."""

    async def make() -> dict[str, str]:
        async with an_engine(windlass.environment["WINDLASS_DATABASE_URL"]) as engine:
            paths = " ".join(path for _, path in ROUTES)
            return await Things(windlass, engine, windlass.client).made(paths)

    return {**asyncio.run(make()), "token": "of-no-order"}


def repeated(piece: str, size: int, *, around: str = "[{}]") -> bytes:
    """So many numbered pieces that they fill the size."""
    count = size // (len(piece) + 5 * piece.count("#") + 1)
    return around.replace("{}", ",".join(piece.replace("#", f"{number:06}") for number in range(count))).encode()


def shapes(size: int) -> Iterator[tuple[str, bytes]]:
    """Whole bodies, whatever a route takes."""
    yield "repeated names", repeated('"a":1', size, around="{{}}")
    yield "names repeated at the end", repeated('"a#":1', size, around='{{},"z":1,"z":1}')
    yield "unknown fields", repeated('"a#":1', size, around="{{}}")
    yield "many objects", repeated('{"a#":{}}', size)
    yield "brackets", b"[" * size
    yield "nested", b'{"a":' * 63 + repeated('"a#":1', size, around="{{}}") + b"}" * 63
    yield "a long name around many items", f'{{"{"n" * (size // 2)}":[{"0," * (size // 4)}"\\u0000"]}}'.encode()
    yield "a long string", json.dumps("s" * size).encode()
    yield "control characters", repeated('"\x7f\\u0001#":"\\u0001"', size, around="{{}}")
    yield "digits", b"[" + b"1" * (size - 2) + b"]"
    yield "deep lists", repeated("[" * 60 + "]" * 60, size)
    yield "empty lists", repeated("[]", size)
    yield "texts with brackets", repeated('"["', size)
    yield "long integers", repeated("1234567890123456789", size)
    yield "integers and one that is too large", repeated("0", size, around=f"[{{}},{'9' * 20}]")
    yield "escaped colons", repeated('"a#":"\\u003a"', size, around="{{}}")
    yield "texts and a NUL", repeated('"a"', size, around='[{},"\\u0000"]')


def values(size: int) -> Iterator[tuple[str, str]]:
    """What may stand in any field."""
    yield "string", json.dumps("s" * size)
    yield "unknown", repeated('"a#":1', size, around="{{}}").decode()
    yield "objects", repeated('{"a#":1}', size).decode()
    yield "strings", repeated('"a#"', size).decode()
    yield "numbers", repeated("1", size).decode()
    yield "references", repeated('{"$from":"a#"}', size).decode()
    yield "nested", repeated('{"actor":"probe","key":"k#","a#":[1,{"b#":2}]}', size).decode()


VALUES = dict(values(BODY_BYTES))


def fields_of(method: str, path: str) -> list[str]:
    operation = DOCUMENT["paths"].get(path, {}).get(method.lower(), {})
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return sorted(_names(content.get("schema", {})))


def _names(schema: dict[str, Any]) -> set[str]:
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    below = (_names(each) for kind in ("anyOf", "oneOf", "allOf") for each in schema.get(kind, ()))
    return set(schema.get("properties", ())).union(*below)


def example_of(method: str, path: str) -> dict[str, Any]:
    operation = OPERATIONS.get((method, path))
    return dict((operation and operation.example) or {})


def bodies(method: str, path: str, size: int) -> Iterator[tuple[str, bytes]]:
    """A few for each route, the same in each run; all of them where most can be sent."""
    example = example_of(method, path)
    whole = dict(shapes(size))
    within = [(name, kind, value) for name in fields_of(method, path) for kind, value in VALUES.items()]
    dice = random.Random(f"{method} {path}")
    if (method, path) not in THOROUGHLY:
        whole = dict(dice.sample(sorted(whole.items()), 2))
        within = dice.sample(within, min(4, len(within)))
    yield from whole.items()
    for name, kind, value in within:
        rest = "".join(f",{json.dumps(key)}:{json.dumps(value)}" for key, value in example.items() if key != name)
        yield f"{kind} in {name}", f"{{{json.dumps(name)}:{value}{rest}}}".encode()


def send(windlass: Windlass, method: str, path: str, body: bytes) -> tuple[httpx.Response, float]:
    assert windlass.api is not None
    api = ProcessCpu(windlass.api.pid)
    before = api.seconds()
    response = windlass.client.http.request(method, path, content=body, headers={"Content-Type": "application/json"})
    return response, api.seconds() - before


def refuse(windlass: Windlass, method: str, path: str, body: bytes, what: object) -> httpx.Response:
    """Where it is not taken the answer is small and soon there; the garbage of others may be collected meanwhile."""
    for _ in range(TRIES):
        response, seconds = send(windlass, method, path, body)
        assert response.status_code < 500, (what, response.text[:500])
        assert response.is_success or len(response.content) <= LARGEST_ANSWER_BYTES, what
        if response.is_success or seconds < PATIENCE * CPU_SECONDS:
            return response
    raise AssertionError((what, seconds))


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_bad_body_gets_a_small_answer_soon(
    windlass: Windlass, things: dict[str, str], method: str, path: str
) -> None:
    for what, body in bodies(method, path, BODY_BYTES):
        response = refuse(windlass, method, path.format(**things), body, what)
        assert response.status_code != 404 or "/callbacks/" in path, "nothing was found, so that not every check ran"


def json_of(pieces: list[Any], wrapping: list[Any], size: int) -> str:
    """A few values, over and over until they fill the size, below some lists and objects."""
    written = json.dumps(pieces)[1:-1] or "0"
    around = json.dumps(wrapping)
    return around.replace("null", "[" + ",".join([written] * (size // (len(written) + 1))) + "]", 1)


SMALL = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=30),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=10), below, max_size=4),
    max_leaves=10,
)
WRAPPINGS = st.recursive(
    st.none(), lambda below: st.tuples(below) | st.dictionaries(st.text(max_size=5), below, min_size=1, max_size=1)
)


@examples(max_examples=150)
@given(route=st.sampled_from(ROUTES), field=st.integers(0), content=st.tuples(st.lists(SMALL, max_size=5), WRAPPINGS))
def test_generated_bodies_are_refused_soon(
    windlass: Windlass, things: dict[str, str], route: tuple[str, str], field: int, content: tuple[list[Any], Any]
) -> None:
    """In any field of any call; the rest of the body is as it should be."""
    method, path = route
    fields = fields_of(*route) or ["unknown"]
    name = fields[field % len(fields)]
    written = json_of(*content, BODY_BYTES)
    rest = "".join(
        f",{json.dumps(key)}:{json.dumps(value)}" for key, value in example_of(*route).items() if key != name
    )
    body = f"{{{json.dumps(name)}:{written}{rest}}}".encode()
    refuse(windlass, method, path.format(**things), body, (route, name, content))


def workflow(keys: int, unknown: int) -> bytes:
    """Its keys are alike, and so are the names that none of them has."""
    tasks: list[dict[str, Any]] = [{"key": f"{'ab' * 18}{number:04}", "actor": "probe"} for number in range(keys)]
    tasks[-1]["depends_on"] = [f"{'ba' * 18}{number:04}" for number in range(min(unknown, 1000))]
    tasks[-2]["depends_on"] = [f"{'bb' * 18}{number:04}" for number in range(unknown - 1000)]
    return json.dumps({"name": "wide", "tasks": tasks}).encode()


def dense(edges: int) -> dict[str, Any]:
    keys = [f"k{number}" for number in range(1000)]
    waits = [[keys[(number + each) % 1000] for each in range(1, 1 + edges // 1000)] for number in range(1000)]
    tasks = [{"key": key, "actor": "probe", "depends_on": names} for key, names in zip(keys, waits, strict=True)]
    return {"name": "dense", "tasks": tasks}


TEXT = {"result": {"$text": [{"$from": "a"}] * 70_000}}
TOO_MANY: dict[str, tuple[str, dict[str, Any], str]] = {
    "dense": ("workflows", dense(200_000), "/tasks"),
    "text": (
        "workflows",
        {
            "name": "text",
            "tasks": [
                {"key": "a", "actor": "probe"},
                {"key": "b", "actor": "probe", "depends_on": ["a"], "payload": TEXT},
            ],
        },
        "/tasks/1/payload",
    ),
    "states": (
        "tasks/bulk",
        {"action": "cancel", "dry_run": True, "filter": {"status": ["x"] * 300_000}},
        "/filter/status",
    ),
    "tags": (
        "tasks/bulk",
        {"action": "cancel", "dry_run": True, "filter": {"tag": [f"x{number}" for number in range(150_000)]}},
        "/filter/tag",
    ),
}


@pytest.mark.parametrize("what", TOO_MANY)
def test_a_list_that_is_too_long_is_refused_before_its_items_are_checked(windlass: Windlass, what: str) -> None:
    path, body, pointer = TOO_MANY[what]
    response = refuse(windlass, "POST", f"/api/v1/{path}", json.dumps(body).encode(), what)
    assert (response.status_code, [each["pointer"] for each in response.json()["errors"]]) == (422, [pointer])


def references(count: int) -> bytes:
    payload = {"result": [{"$from": f"unknown{number}"} for number in range(count)]}
    tasks = [{"key": f"k{number}", "actor": "probe"} for number in range(900)]
    last = {"key": "last", "actor": "probe", "payload": payload, "depends_on": [f"k{n}" for n in range(900)]}
    return json.dumps({"name": "wide", "tasks": [*tasks, last]}).encode()


@pytest.mark.parametrize(
    ("body", "code"),
    [(workflow(1000, 2000), "invalid-workflow"), (references(2_000), "invalid-reference")],
    ids=["dependencies", "references"],
)
def test_a_wide_workflow_is_refused_in_a_few_words(windlass: Windlass, body: bytes, code: str) -> None:
    response = refuse(windlass, "POST", "/api/v1/workflows", body, code)
    problem = response.json()
    assert (response.status_code, problem["code"], len(problem["errors"])) == (422, code, 20)


@pytest.mark.parametrize(
    "what", ["names repeated at the end", "unknown fields", "a long name around many items", "nested"]
)
def test_the_time_of_a_refusal_grows_with_the_body_and_no_faster(windlass: Windlass, what: str) -> None:
    def seconds(size: int) -> float:
        body = dict(shapes(size))[what]
        return min(send(windlass, "POST", "/api/v1/session", body)[1] for _ in range(3))

    assert seconds(BODY_BYTES) < 10 * seconds(BODY_BYTES // 4), "four times as much, with room for the collector"


def test_a_large_payload_of_an_item_costs_no_more_than_that_of_a_task(
    windlass: Windlass, things: dict[str, str]
) -> None:
    payload = f'"payload":{VALUES["unknown"]}'

    def seconds(method: str, path: str, body: str) -> float:
        tries = [send(windlass, method, path, body.encode()) for _ in range(5)]
        assert {response.json()["code"] for response, _ in tries} == {"payload-too-large"}
        assert {each["pointer"] for response, _ in tries for each in response.json()["errors"]} == {"/payload"}
        return min(spent for _, spent in tries)

    of_a_task = seconds("POST", "/api/v1/tasks", f'{{"actor":"probe",{payload}}}')
    items = "/api/v1/projects/{project_id}/items".format(**things)
    assert seconds("POST", items, f'{{"actor":"probe",{payload}}}') < PATIENCE * of_a_task
    assert seconds("PATCH", f"{items}/{things['item_id']}", f"{{{payload}}}") < 2 * of_a_task


def test_an_error_repeats_little_of_what_was_sent(client: Client) -> None:
    body = {"actor": "probe", **{f"\x01{number}{'n' * 50_000}": 1 for number in range(30)}}
    response = client.http.post("/api/v1/tasks", json=body)
    assert response.status_code == 422
    assert len(response.content) <= LARGEST_ANSWER_BYTES
    assert response.json()["errors"]
    response = client.http.get("/api/v1/tasks", params={f"n{number}": "1" for number in range(5000)})
    assert (response.status_code, len(response.json()["errors"])) == (422, 20)

"""A bad body costs little: whatever is wrong with two megabytes, the answer is small, and nothing else waits for it."""

import json
import random
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.an_api import an_api
from tests.support.installation import NOBODY, Client, Windlass
from tests.support.process_cpu import ProcessCpu
from tests.support.servers.private_servers import Servers
from windlass.services.api.main import create_app
from windlass.services.api.reference.openapi import complete
from windlass.services.api.reference.operations import OPERATIONS
from windlass.shared.settings import Settings
from windlass.shared.submission.known import built_in_actors

BODY_BYTES = 1_950_000
LARGEST_ANSWER_BYTES = 65_536
CPU_SECONDS = 0.05
"""What a refusal may cost on an idle machine; a shared one gets ten times as long before a test fails."""

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


def values(size: int) -> Iterator[tuple[str, str]]:
    """What may stand in any field."""
    yield "string", json.dumps("s" * size)
    yield "unknown", repeated('"a#":1', size, around="{{}}").decode()
    yield "objects", repeated('{"a#":1}', size).decode()
    yield "strings", repeated('"a#"', size).decode()
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
    path = path.replace("{name}", "probe")
    for name in ("task_id", "workflow_id", "project_id", "item_id", "webhook_id", "delivery_id", "schedule"):
        path = path.replace(f"{{{name}}}", str(NOBODY))
    assert windlass.api is not None
    api = ProcessCpu(windlass.api.pid)
    before = api.seconds()
    response = windlass.client.http.request(method, path, content=body, headers={"Content-Type": "application/json"})
    return response, api.seconds() - before


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_bad_body_gets_a_small_answer_soon(windlass: Windlass, method: str, path: str) -> None:
    for what, body in bodies(method, path, BODY_BYTES):
        response, seconds = send(windlass, method, path, body)
        assert response.status_code < 500, (what, response.text[:500])
        assert response.is_success or len(response.content) <= LARGEST_ANSWER_BYTES, what
        assert response.is_success or seconds < 10 * CPU_SECONDS, (what, seconds)


def workflow(keys: int, unknown: int) -> bytes:
    """Its keys are alike, and so are the names that none of them has."""
    tasks: list[dict[str, Any]] = [{"key": f"{'ab' * 18}{number:04}", "actor": "probe"} for number in range(keys)]
    tasks[-1]["depends_on"] = [f"{'ba' * 18}{number:04}" for number in range(min(unknown, 1000))]
    tasks[-2]["depends_on"] = [f"{'bb' * 18}{number:04}" for number in range(unknown - 1000)]
    return json.dumps({"name": "wide", "tasks": tasks}).encode()


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
    response, seconds = send(windlass, "POST", "/api/v1/workflows", body)
    problem = response.json()
    assert (response.status_code, problem["code"], len(problem["errors"])) == (422, code, 20)
    assert len(response.content) <= LARGEST_ANSWER_BYTES
    assert seconds < 10 * CPU_SECONDS


@pytest.mark.parametrize(
    "what", ["names repeated at the end", "unknown fields", "a long name around many items", "nested"]
)
def test_the_time_of_a_refusal_grows_with_the_body_and_no_faster(windlass: Windlass, what: str) -> None:
    def seconds(size: int) -> float:
        body = dict(shapes(size))[what]
        return min(send(windlass, "POST", "/api/v1/session", body)[1] for _ in range(3))

    assert seconds(BODY_BYTES) < 10 * seconds(BODY_BYTES // 4), "four times as much, with room for the collector"


def test_an_error_repeats_little_of_what_was_sent(client: Client) -> None:
    body = {"actor": "probe", **{f"\x01{number}{'n' * 50_000}": 1 for number in range(30)}}
    response = client.http.post("/api/v1/tasks", json=body)
    assert response.status_code == 422
    assert len(response.content) <= LARGEST_ANSWER_BYTES
    assert response.json()["errors"]
    response = client.http.get("/api/v1/tasks", params={f"n{number}": "1" for number in range(5000)})
    assert (response.status_code, len(response.json()["errors"])) == (422, 20)

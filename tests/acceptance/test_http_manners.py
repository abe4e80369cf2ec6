"""What every call has in common: methods, ids, types, queries, and errors that can be looked up."""

import ast
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.an_api import an_api, new_key
from tests.support.installation import NOBODY, Client, Windlass
from tests.support.servers.private_servers import Servers
from windlass.services.api.reference.operations import OPERATIONS
from windlass.services.api.reference.problems import PROBLEMS

PROJECT = Path(__file__).parents[2]
REFUSING = (PROJECT / "services" / "api", PROJECT / "shared" / "submission")
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def windlass(servers: Servers, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Windlass]:
    with an_api(servers, migrated_template, tmp_path_factory.mktemp("manners")) as windlass:
        yield windlass
    assert "Traceback" not in windlass.log(), "nothing that a client sends is an error of ours"


@pytest.fixture
def client(windlass: Windlass) -> Client:
    return windlass.client


def real(path: str, client: Client) -> str:
    """A path with something behind its id, where the api alone can have something."""
    task_id = client.submit(delay_seconds=3600)["task_id"]
    named = {
        "key_id": "nobody",
        "worker_id": "nobody",
        "task_id": task_id,
        "name": "probe",
        "workflow_run_id": "any",
        "content_id": NOBODY,
        "bulk_id": NOBODY,
        "project_id": NOBODY,
        "workflow_id": NOBODY,
        "item_id": NOBODY,
        "event_id": NOBODY,
        "job_id": NOBODY,
        "model_id": NOBODY,
        "webhook_id": NOBODY,
        "delivery_id": NOBODY,
        "schedule": "nobody",
    }
    return re.sub(r"\{(\w+)\}", lambda found: str(named[found[1]]), path)


READABLE = sorted({path for method, path in OPERATIONS if method == "GET"})


@pytest.mark.parametrize("path", [*READABLE, "/schema", "/schema/openapi.json", "/problems", "/problems/not-found"])
def test_head_is_answered_as_get_without_a_body(client: Client, path: str) -> None:
    path = real(path, client)
    with client.http.stream("GET", path) as got:
        expected = got.status_code, got.headers["content-type"]
    head = client.http.head(path)
    assert (head.status_code, head.headers["content-type"]) == expected
    assert head.content == b""
    assert client.http.get("/health/live").status_code == 200, "the connection is where it should be"


def test_head_needs_a_key_where_get_does(windlass: Windlass) -> None:
    assert httpx.head(f"{windlass.url}/api/v1/tasks", timeout=60, trust_env=False).status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/api/v1/tasks", "GET, HEAD, OPTIONS, POST"),
        ("GET", "/api/v1/tasks/batch", "OPTIONS, POST"),
        ("PATCH", f"/api/v1/tasks/{NOBODY}", "DELETE, GET, HEAD, OPTIONS, POST"),  # an actor's name may stand there
        ("DELETE", "/health", "GET, HEAD, OPTIONS"),
    ],
)
def test_allow_says_what_a_path_takes(client: Client, method: str, path: str, allowed: str) -> None:
    refused = client.http.request(method, path)
    assert (refused.status_code, refused.json()["code"]) == (405, "method-not-allowed")
    assert refused.headers["allow"] == allowed
    asked = client.http.options(path)
    assert (asked.status_code, asked.headers["allow"], asked.content) == (204, allowed, b"")
    assert client.http.options("/api/v1/nowhere").status_code == 404


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Content-Type": "application/x-www-form-urlencoded"}, "unsupported-media-type"),
        ({"Content-Type": "multipart/form-data; boundary=x"}, "unsupported-media-type"),
        ({"Content-Type": "text/plain"}, "unsupported-media-type"),
        ({**JSON, "Content-Encoding": "gzip"}, "unsupported-content-encoding"),
        ({**JSON, "Content-Encoding": "br"}, "unsupported-content-encoding"),
    ],
)
def test_forms_and_encodings_are_refused(client: Client, headers: dict[str, str], code: str) -> None:
    body = b'{"actor": "probe"}'
    content = gzip.compress(body) if headers.get("Content-Encoding") == "gzip" else body
    refused = client.http.post("/api/v1/tasks", content=content, headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (415, code)
    assert refused.headers["accept" if code == "unsupported-media-type" else "accept-encoding"]


WITH_A_BODY = sorted(key for key, said in OPERATIONS.items() if said.body is not None and said.needs_a_key)


@pytest.mark.parametrize(("method", "path"), [key for key in WITH_A_BODY if OPERATIONS[key].body_required])
@pytest.mark.parametrize("content", [b"", b"  \n"], ids=["nothing", "blanks"])
def test_an_empty_body_is_refused(client: Client, method: str, path: str, content: bytes) -> None:
    refused = client.http.request(method, real(path, client), content=content, headers=JSON)
    assert (refused.status_code, refused.json()["code"]) == (400, "empty-body")


@pytest.mark.parametrize(
    "body",
    [
        '{"actor": "probe", "actor": "probe"}',
        '{"actor": "probe", "payload": {"result": {"a": 1, "b": [{"c": 1, "c": 2}]}}}',
        '{"actor": "probe", "act\\u006fr": "summarize"}',
        '{"actor": "probe", "actor": "probe", "tags": ["a colon: here"]}',
    ],
)
def test_a_name_that_is_given_twice_is_refused(client: Client, body: str) -> None:
    refused = client.http.post("/api/v1/tasks", content=body, headers=JSON)
    assert (refused.status_code, refused.json()["code"]) == (400, "duplicate-name")


def test_colons_in_texts_are_no_names(client: Client) -> None:
    result = {"a:b": ["x: y", {"url": "http://127.0.0.1:1/"}], "twice": {"twice": 1}}
    assert client.submit(payload={"result": result})["payload"]["result"] == result


@pytest.mark.parametrize(("method", "path"), sorted(key for key in OPERATIONS if "/callbacks/" not in key[1]))
def test_a_parameter_that_a_call_does_not_take_is_refused(client: Client, method: str, path: str) -> None:
    body = (OPERATIONS[method, path].example or {}) if OPERATIONS[method, path].body else None
    path = real(path, client)
    refused = client.http.request(method, path, params={"limti": "1"}, json=body)
    assert (refused.status_code, refused.json()["code"]) == (422, "unknown-parameter"), refused.text
    assert [each["pointer"] for each in refused.json()["errors"]] == ["/limti"]


def test_the_parameter_that_was_meant_is_named(client: Client) -> None:
    assert "`limit`" in client.http.get("/api/v1/tasks?limti=1").json()["errors"][0]["detail"]
    twice = client.http.get("/api/v1/tasks?actor=probe&actor=media")
    assert (twice.status_code, twice.json()["errors"][0]["pointer"]) == (422, "/actor")
    assert client.http.get("/api/v1/tasks?status=dead&status=queued&tag=a&tag=b").status_code == 200


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"actor": "probe", "priority": True}, "/priority"),
        ({"actor": "probe", "priority": "1"}, "/priority"),
        ({"actor": "probe", "max_retries": "1"}, "/max_retries"),
        ({"actor": "probe", "timeout_seconds": "5"}, "/timeout_seconds"),
        ({"actor": "probe", "timeout_seconds": True}, "/timeout_seconds"),
        ({"actor": "probe", "task_type": 7}, "/task_type"),
        ({"actor": "probe", "run_at": 1893456000}, "/run_at"),
        ({"actor": "probe", "retry_delays": ["5"]}, "/retry_delays/0"),
        ({"actor": "probe", "retry_delays": {"other": {"curve": "quadratic", "cap": "2"}}}, "/retry_delays/other/cap"),
        ({"actor": "probe", "payload": {"seconds": "1"}}, "/payload/seconds"),
        ({"actor": "probe", "payload": {"steps": True}}, "/payload/steps"),
        ({"actor": "agent", "payload": {"subagent_type": "demo", "prompt": "p", "limits": {"processes": "1"}}},
         "/payload/limits/processes"),
    ],
)  # fmt: skip
def test_nothing_is_taken_for_something_else(client: Client, body: dict[str, Any], pointer: str) -> None:
    refused = client.http.post("/api/v1/tasks", json=body)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == pointer


@pytest.mark.parametrize(
    ("path", "body", "pointer"),
    [
        ("tasks/bulk", {"action": "cancel", "filter": {}, "all": "true"}, "/all"),
        ("tasks/bulk", {"action": "cancel", "filter": {"created_after": 1893456000}}, "/filter/created_after"),
        ("queues/dlq/revive", {"all": True, "canary": "3"}, "/canary"),
        ("keys", {"role": "user", "user_id": "a", "expires_in_seconds": "9"}, "/expires_in_seconds"),
        ("tasks/requeue-orphaned", {"max_age_seconds": True}, "/max_age_seconds"),
    ],
)
def test_nor_by_operators(client: Client, path: str, body: dict[str, Any], pointer: str) -> None:
    refused = client.http.post(f"/api/v1/{path}", json=body)
    assert (refused.status_code, [each["pointer"] for each in refused.json()["errors"]]) == (422, [pointer])


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("tasks/no-id", "task-not-found"),
        ("tasks/no-id/stream", "task-not-found"),
        ("tasks/123/why", "task-not-found"),
        ("bulk/no-id", "bulk-not-found"),
        ("media/no-id", "media-not-found"),
        ("keys/no-id", "key-not-found"),
        ("providers/no-id", "provider-not-found"),
    ],
)
def test_an_id_that_is_none_is_the_id_of_nothing(client: Client, path: str, code: str) -> None:
    method = "DELETE" if path.startswith("keys") else "GET"
    refused = client.http.request(method, f"/api/v1/{path}")
    assert (refused.status_code, refused.json()["code"]) == (404, code)


def test_a_request_keeps_its_id(client: Client) -> None:
    for path in ("/api/v1/tasks", "/api/v1/nowhere", "/health/live"):
        answer = client.http.get(path, headers={"X-Request-ID": "from-a-client.7"})
        assert answer.headers["x-request-id"] == "from-a-client.7"
    assert client.http.get("/api/v1/nowhere", headers={"X-Request-ID": "mine"}).json()["request_id"] == "mine"
    secret = "wl_tests1_abcdefghijklmnopqrstuvwxyz"
    for odd in ("", "two words", "a" * 129, "<b>", secret):
        answer = client.http.get("/api/v1/nowhere", headers={"X-Request-ID": odd})
        assert re.fullmatch("[0-9a-f]{32}", answer.headers["x-request-id"])
        assert answer.json()["request_id"] == answer.headers["x-request-id"]


def test_what_a_request_submitted_is_found_by_its_id(client: Client) -> None:
    def found(request_id: str) -> list[str]:
        page = client.http.get("/api/v1/tasks", params={"request_id": request_id}).raise_for_status().json()
        assert all("request_id" not in each for each in page["items"])
        return [each["task_id"] for each in page["items"]]

    body = {"actor": "probe", "delay_seconds": 3600}
    sent = client.http.post("/api/v1/tasks/batch", json={"tasks": [body, body]}, headers={"X-Request-ID": "order.7"})
    assert sorted(found("order.7")) == sorted(each["task_id"] for each in sent.json()["tasks"])
    unnamed = client.http.post("/api/v1/tasks", json=body)
    assert found(unnamed.headers["x-request-id"]) == [unnamed.json()["task_id"]]
    several = client.http.post("/api/v1/tasks/batch", json={"tasks": [body, body]})
    assert found(several.headers["x-request-id"]) == [several.json()["tasks"][0]["task_id"]]
    assert found("order.8") == []


def codes_in_the_source() -> set[str]:
    """Every code that the api can answer with: the slugs among the arguments of what makes problems."""
    makers = {"Problem", "Refused", "field_problem", "invalid_fields", "problem_of_fields", "refusal", "super"}
    found = set()
    for file in (each for room in REFUSING for each in room.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in makers | {
                "__init__"
            }:
                texts = [each.value for each in node.args[:3] if isinstance(each, ast.Constant)]
                found |= {text for text in texts if isinstance(text, str) and re.fullmatch("[a-z]+(-[a-z]+)*", text)}
    return found


def test_every_problem_has_its_page(windlass: Windlass, client: Client) -> None:
    codes = codes_in_the_source()
    assert {"task-not-found", "provider-required", "invalid-payload"} <= codes <= PROBLEMS.keys()
    with httpx.Client(base_url=windlass.url, timeout=60, trust_env=False) as anybody:
        for code, meaning in PROBLEMS.items():
            page = anybody.get(f"/problems/{code}")
            assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
            assert all(str(status) in page.text for status in meaning.statuses)
            assert code in anybody.get("/problems").text
        assert anybody.get("/problems/task-not-fuond").json()["detail"].endswith("did you mean `task-not-found`?")
    problem = client.http.get(f"/api/v1/tasks/{NOBODY}").json()
    assert anybody_reads(windlass, problem["type"]) == 200


def anybody_reads(windlass: Windlass, path: str) -> int:
    return httpx.get(f"{windlass.url}{path}", timeout=60, trust_env=False).status_code


def test_metrics_are_for_those_who_see_everything(windlass: Windlass, client: Client) -> None:
    assert anybody_reads(windlass, "/metrics") == 401
    assert client.with_key(new_key(client, "user", "ann")).http.get("/metrics").status_code == 403
    assert client.with_key(new_key(client, "viewer", "vic")).http.get("/metrics").status_code == 200


def test_all_times_end_in_z(client: Client) -> None:
    task = client.submit(delay_seconds=3600, run_at=None)
    client.change_provider("probe", limit=3)
    paths = ["tasks?full=true", f"tasks/{task['task_id']}", f"tasks/{task['task_id']}/events", "keys", "audit",
             "providers", "providers/probe/events", "queues/status"]  # fmt: skip
    told = "".join(client.http.get(f"/api/v1/{path}").raise_for_status().text for path in paths)
    times = re.findall(r'"(\d{4}-\d\d-\d\dT[^"]*)"', told + client.http.get("/health").text)
    assert len(times) > 8
    assert [time for time in times if not time.endswith("Z")] == []


def test_priorities_go_by_words_too(client: Client) -> None:
    words = {"critical": 0, "high": 1, "medium": 2, "low": 3}
    for word, number in words.items():
        assert client.submit(priority=word, delay_seconds=3600)["priority"] == number
    shortcut = {"content": "a text", "priority": "high", "delay_seconds": 3600}
    assert client.http.post("/api/v1/tasks/summarize", json=shortcut).json()["priority"] == 1
    (task_id,) = client.submit_many([{"priority": "low", "delay_seconds": 3600}])
    assert client.get(task_id)["priority"] == 3
    refused = client.http.post("/api/v1/tasks", json={"actor": "probe", "priority": "hihg"})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/priority")
    assert "`high`" in refused.json()["errors"][0]["detail"]
    same = {"Idempotency-Key": "one"}
    first = client.http.post("/api/v1/tasks", json={"actor": "probe", "priority": "high"}, headers=same)
    again = client.http.post("/api/v1/tasks", json={"actor": "probe", "priority": 1}, headers=same)
    assert (again.status_code, again.json()["task_id"]) == (200, first.json()["task_id"]), "the word is the number"


def test_queues_have_totals(client: Client) -> None:
    client.submit(delay_seconds=3600)
    status = client.http.get("/api/v1/queues/status").json()
    assert status["totals"]["scheduled"] >= 1
    for name, total in status["totals"].items():
        assert total == sum(queue[name] for queue in status["queues"])


def test_providers_say_what_they_can_be_asked_for(client: Client) -> None:
    providers = {each["name"]: each for each in client.http.get("/api/v1/providers").json()["items"]}
    actions = {each["action"]: each["params_schema"] for each in providers["leonardo"]["capabilities"]["actions"]}
    assert set(actions) == {"txt2img", "img2img", "img2vid"}
    assert actions["txt2img"]["properties"]["num_images"]
    assert providers["probe"]["capabilities"] == {"actions": []}
    assert client.http.get("/api/v1/providers/leonardo").json()["capabilities"] == providers["leonardo"]["capabilities"]


def test_tasks_are_found_by_their_type_and_their_agent(client: Client) -> None:
    first = client.submit(task_type="nightly", delay_seconds=3600)["task_id"]
    client.submit(task_type="daily", delay_seconds=3600)
    agent = {"subagent_type": "demo", "prompt": "p", "delay_seconds": 3600}
    second = client.http.post("/api/v1/tasks/agent", json=agent).raise_for_status().json()["task_id"]
    for filters, expected in (
        ({"task_type": "nightly"}, [first]),
        ({"subagent_type": "demo"}, [second]),
        ({"subagent_type": "nobody"}, []),
        ({"subagent_type": "demo", "actor": "probe"}, []),
    ):
        assert [task["task_id"] for task in client.tasks(**filters)] == expected
    wanted = {"action": "cancel", "filter": {"task_type": "nightly"}, "dry_run": True}
    assert client.http.post("/api/v1/tasks/bulk", json=wanted).json() == {"matched": 1}


def test_a_time_that_is_past_means_now(client: Client) -> None:
    """Else it would go before everybody who waits."""
    before = client.submit()
    task = client.submit(run_at="2001-01-01T00:00:00Z")
    assert task["available_at"] >= before["available_at"]
    too_far = client.http.post("/api/v1/tasks", json={"actor": "probe", "run_at": "2100-01-01T00:00:00Z"})
    assert (too_far.status_code, too_far.json()["errors"][0]["pointer"]) == (422, "/run_at")


def test_json_goes_in_whatever_type_of_json_it_is_called(client: Client) -> None:
    body = json.dumps({"actor": "probe"}).encode()
    for kind in ("application/json", "application/json; charset=utf-8", "application/merge-patch+json"):
        answer = client.http.post("/api/v1/tasks", content=body, headers={"Content-Type": kind})
        assert answer.status_code == 201

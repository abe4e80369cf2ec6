"""Workflows as a user meets them: a chain of real work with a person in it, refused graphs, and a stream that ends."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.acceptance.conftest import a_windlass_apart
from tests.support.an_api import new_key
from tests.support.failpoints.arming import Failpoints
from tests.support.installation import PROJECT, Client, Windlass
from tests.support.providers.fake_providers import FakeProviders, fake_providers
from tests.support.servers.private_servers import Servers, open_directory
from tests.support.waiting import wait_until
from tests.support.workflows.chain import ACTORS, CONFIG, PICTURES, QUESTION, Chain, was_paid_once


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    with open_directory() as directory:
        yield directory


@pytest.fixture(scope="module")
def fake(directory: Path) -> Iterator[FakeProviders]:
    with fake_providers(directory) as fake:
        yield fake


@pytest.fixture(scope="module")
def windlass(
    servers: Servers, migrated_template: str, management: httpx.Client, directory: Path, fake: FakeProviders
) -> Iterator[Windlass]:
    settings = {
        "WINDLASS_FAKE_PROVIDERS_URL": fake.url,
        "WINDLASS_DATA_DIR": str(directory / "data"),
        **Failpoints(directory / "failpoints").environment,
    }
    with a_windlass_apart(
        servers, migrated_template, management, directory, config=CONFIG, actors=ACTORS, **settings
    ) as windlass:
        windlass.start_all()
        yield windlass


@pytest.fixture
def client(windlass: Windlass) -> Client:
    return windlass.client


def post(client: Client, path: str, body: Any = None, **headers: str) -> httpx.Response:
    return client.http.post(f"/api/v1{path}", json={} if body is None else body, headers=headers)


def submit(client: Client, *tasks: dict[str, Any], **fields: Any) -> Any:
    answer = post(client, "/workflows", {"name": "report", "tasks": list(tasks), **fields})
    assert answer.status_code == 201, answer.text
    assert answer.headers["Location"] == f"/api/v1/workflows/{answer.json()['workflow_id']}"
    return answer.json()


def read(client: Client, workflow_id: str, wait: float | None = None) -> Any:
    params = {} if wait is None else {"wait": wait}
    return client.http.get(f"/api/v1/workflows/{workflow_id}", params=params).raise_for_status().json()


def finished(client: Client, workflow_id: str) -> Any:
    wait_until("it has ended", lambda: read(client, workflow_id, wait=5)["status"] != "running", seconds=90)
    return read(client, workflow_id)


def statuses(workflow: Any) -> dict[str, str]:
    return {node["key"]: node["status"] for node in workflow["nodes"]}


def task_of(client: Client, workflow: Any, key: str) -> Any:
    (found,) = [node for node in workflow["nodes"] if node["key"] == key]
    return client.get(found["task_id"])


def probe(key: str, *after: Any, **fields: Any) -> dict[str, Any]:
    return {"key": key, "actor": "probe", "payload": {"seconds": 0}, "depends_on": list(after), **fields}


def test_a_chain_of_real_work_with_a_person_in_it(windlass: Windlass, client: Client, fake: FakeProviders) -> None:
    """A worker is killed on the way, where an order is out and nobody has noted it yet."""
    chain = Chain(client, fake)
    windlass.failpoints.kill("media-ordered")
    workflow = chain.submit()
    assert {"from": "points", "to": "pictures", "on": "completed"} in workflow["edges"]
    question = chain.wait_for_the_question()
    windlass.failpoints.wait_until_spent("media-ordered")
    assert (question["key"], question["message"]) == ("last", QUESTION)
    task_id = question["task_id"]
    assert client.why(task_id)["reason"] == "waiting-for-approval"
    assert {"kind": "approval", "count": 1} in client.http.get("/api/v1/overview").json()["waiting_for_you"]
    assert chain.approve()["approval"]["comment"] == "fine"
    assert post(client, f"/tasks/{task_id}/reject").json()["code"] == "already-decided"

    was_paid_once(chain)
    (pictures,) = [node for node in chain.read()["nodes"] if node["key"] == "pictures"]
    assert [child["key"] for child in pictures["children"]] == list(PICTURES)
    tasks = chain.tasks()
    assert sum(tasks[key]["attempt"] for key in PICTURES) > len(PICTURES), "one of them was taken over"
    for n, key in enumerate(PICTURES):
        assert tasks[key]["input"]["prompt"].startswith(f"{chain.mark} picture {n} of The keeper")
    assert tasks["last"]["input"]["content"].startswith(f"Publish {chain.mark}: I have thought"), "as it got it"
    assert tasks["last"]["payload"]["content"]["$text"][0] == f"Publish {chain.mark}: ", "as it was submitted"
    entries = client.http.get("/api/v1/audit", params={"action": "task.approve"}).json()["items"]
    assert [each["target"] for each in entries].count(task_id) == 1


def test_what_is_wrong_with_a_graph_is_named(client: Client) -> None:
    ref = {"payload": {"result": {"$from": "nobody"}}}
    for tasks, pointer, word in (
        ([probe("a", "c"), probe("b", "a"), probe("c", "b")], "/tasks/0/depends_on", "circle"),
        ([probe("a"), probe("a")], "/tasks/1/key", "twice"),
        ([probe("a"), probe("b", "ab")], "/tasks/1/depends_on/0", "ab"),
        ([probe("a"), probe("b", {"key": "x"})], "/tasks/1/depends_on/0/key", "x"),
        ([probe("a"), probe("b", "a", **ref)], "/tasks/1/payload/result/$from", "depends on"),
        ([probe("a"), probe("b", "a", payload={"outcome": {"$from": "a"}})], "/tasks/1/payload/outcome", "outright"),
        ([probe("a"), probe("b", "a", payload={"seconds": "x"})], "/tasks/1/payload/seconds", "number"),
        ([probe("a"), probe("b", "a", payload={"result": {"$item": True}})], "/tasks/1/payload/result", "for_each"),
        ([probe("a", for_each={"$from": "x"})], "/tasks/0/for_each/$from", "x"),
        ([probe("a[0]")], "/tasks/0/key", ""),
        ([probe("a", dedupe_key="k")], "/tasks/0/dedupe_key", ""),
        ([probe("a", actor="nobody")], "/tasks/0/actor", "nobody"),
        ([probe("a", str(uuid4()))], "/tasks/0/depends_on", "no such task"),
        ([], "/tasks", "1 to 1000"),
        ([probe(f"t{n}") for n in range(1001)], "/tasks", "1 to 1000"),
    ):  # fmt: skip
        answer = post(client, "/workflows", {"name": "wrong", "tasks": tasks})
        assert answer.status_code == 422, (pointer, answer.text)
        (error, *_) = answer.json()["errors"]
        assert error["pointer"] == pointer, answer.text
        assert word in error["detail"]
    assert post(client, "/workflows", {"tasks": [probe("a")]}).json()["errors"][0]["pointer"] == "/name"
    assert client.http.get("/api/v1/workflows", params={"name": "wrong"}).json()["items"] == [], "all or nothing"


def test_a_repeat_is_answered_with_the_first_one_and_lists_find_it(client: Client) -> None:
    body: dict[str, Any] = {"name": f"twice-{uuid4().hex[:6]}", "tasks": [probe("a")], "tags": ["seen"]}
    key = {"Idempotency-Key": uuid4().hex}
    first = post(client, "/workflows", body, **key)
    again = post(client, "/workflows", body, **key)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.headers["Idempotent-Replayed"] == "true"
    workflow_id = first.json()["workflow_id"]
    assert again.json()["workflow_id"] == workflow_id
    assert post(client, "/workflows", {**body, "tags": []}, **key).json()["code"] == "idempotency-key-reused"
    finished(client, workflow_id)
    for params in ({"name": body["name"]}, {"name": body["name"], "tag": "seen", "status": ["completed", "failed"]}):
        items = client.http.get("/api/v1/workflows", params=params).json()["items"]
        assert [each["workflow_id"] for each in items] == [workflow_id]
        assert "nodes" not in items[0]
    stranger = client.with_key(new_key(client, "user", "carl"))
    assert stranger.http.get(f"/api/v1/workflows/{workflow_id}").json()["code"] == "workflow-not-found"
    assert stranger.http.get("/api/v1/workflows", params={"name": body["name"]}).json()["items"] == []


def test_a_diamond_with_results_and_a_stream_that_can_be_resumed(client: Client) -> None:
    workflow = submit(
        client,
        probe("top", payload={"result": {"n": 1}}),
        probe("left", "top", payload={"result": {"$from": "top", "path": "/echo/n"}}),
        probe("right", "top", payload={"result": {"$from": "top", "path": "/m", "default": 2}}),
        probe(
            "bottom",
            "left",
            "right",
            payload={"result": [{"$from": "left", "path": "/echo"}, {"$from": "right", "path": "/echo"}]},
        ),
        probe("each", "left", for_each={"$from": "bottom", "path": "/echo"}, payload={"result": {"$item": True}}),
    )
    assert [each for each in workflow["edges"] if each["to"] == "each"] == [
        {"from": "left", "to": "each", "on": "completed"},
        {"from": "bottom", "to": "each", "on": "completed"},
    ]
    workflow_id = workflow["workflow_id"]
    events = stream(client, workflow_id)
    assert [name for _, name, _ in events][-1] == "complete"
    assert {name for _, name, _ in events} <= {"workflow", "progress", "complete"}
    assert events[-1][2]["status"] == "completed"
    keys = {data["key"] for _, name, data in events if name == "progress"}
    assert {"bottom", "each[1]"} <= keys
    after = {"Last-Event-ID": events[-1][0]}
    assert client.http.get(f"/api/v1/workflows/{workflow_id}/stream", headers=after).status_code == 204
    resumed = stream(client, workflow_id, after=events[0][0])
    assert [each[1] for each in resumed][-1] == "complete"
    over = read(client, workflow_id)
    assert task_of(client, over, "bottom")["result"]["echo"] == [1, 2]
    bad = client.http.get(f"/api/v1/workflows/{workflow_id}/stream", params={"after": "nonsense"})
    assert bad.json()["code"] == "invalid-event-id"


def stream(
    client: Client,
    workflow_id: str,
    *,
    after: str | None = None,
    react: Callable[[str, Any], object] = lambda _name, _data: None,
) -> list[tuple[str, str, Any]]:
    """All of it, to its end."""
    headers = {} if after is None else {"Last-Event-ID": after}
    events: list[tuple[str, str, Any]] = []
    place = name = ""
    with client.http.stream("GET", f"/api/v1/workflows/{workflow_id}/stream", headers=headers, timeout=60) as answer:
        assert answer.status_code == 200
        for line in answer.iter_lines():
            field, _, value = line.partition(": ")
            if field == "id":
                place = value
            elif field == "event":
                name = value
            elif field == "data":
                events.append((place, name, json.loads(value)))
                react(name, events[-1][2])
    return events


def test_a_stream_stays_open_while_it_stands_and_closes_at_each_end(client: Client) -> None:
    fails = {"seconds": 0, "outcome": "permanent"}
    workflow_id = submit(client, probe("bad", payload=fails), probe("next", "bad"), failure_threshold=1)["workflow_id"]
    answers: list[int] = []

    def resume(name: str, data: Any) -> None:
        if name == "workflow" and data["status"] == "escalated" and not answers:
            answers.append(post(client, f"/workflows/{workflow_id}/resume", {"retry": "none"}).status_code)

    events = stream(client, workflow_id, react=resume)
    assert answers == [202]
    assert (events[-1][1], events[-1][2]["status"], events[-1][2]["failures"]) == ("error", "failed", 0)
    assert all({"task_id", "key", "status"} <= data.keys() for _, name, data in events if name == "progress")

    running = submit(client, probe("long", payload={"seconds": 600}))
    client.wait_until(running["nodes"][0]["task_id"], "running")

    def cancel(name: str, _data: Any) -> None:
        if name == "workflow" and len(answers) == 1:
            answers.append(post(client, f"/workflows/{running['workflow_id']}/cancel").status_code)

    events = stream(client, running["workflow_id"], react=cancel)
    assert answers == [202, 202], "a worker has to stop it first"
    assert (events[-1][1], events[-1][2]["status"], events[-1][2]["cancel_requested"]) == ("cancelled",) * 2 + (True,)


def test_each_finds_its_own_and_joins_its_own(client: Client) -> None:
    carl, name = client.with_key(new_key(client, "user", "carl")), f"pages-{uuid4().hex[:6]}"
    first, second = (submit(carl, probe("a", delay_seconds=3600), name=name) for _ in range(2))
    assert first.keys() == {
        "workflow_id", "name", "status", "user_id", "tags", "failure_threshold", "failures", "counts",
        "cancel_requested", "schedule_id", "created_at", "updated_at", "completed_at", "nodes", "edges",
    }  # fmt: skip
    foreign = submit(client, probe("a", delay_seconds=3600), name=name)

    def listed(asker: Client, **params: Any) -> Any:
        return asker.http.get("/api/v1/workflows", params={"name": name, **params}).raise_for_status().json()

    def ids(page: Any) -> list[str]:
        return [each["workflow_id"] for each in page["items"]]

    page = listed(client, user_id="carl", limit=1)
    assert ids(page) == [second["workflow_id"]]
    assert ids(listed(client, user_id="carl", limit=1, cursor=page["next_cursor"])) == [first["workflow_id"]]
    assert ids(listed(carl)) == [second["workflow_id"], first["workflow_id"]]
    assert ids(listed(client, created_before=second["created_at"])) == [first["workflow_id"]]
    assert ids(listed(client, created_after=second["created_at"])) == [foreign["workflow_id"]]
    assert ids(listed(client, status="completed")) == []

    carl.submit(actor="probe", workflow_id=foreign["workflow_id"], delay_seconds=3600)
    assert read(client, foreign["workflow_id"])["counts"]["total"] == 1, "to carl it is a label"
    for each in (first, second, foreign):
        assert post(client, f"/workflows/{each['workflow_id']}/cancel").status_code == 200


def test_a_person_decides_about_its_own_once(client: Client) -> None:
    carl, eve = (client.with_key(new_key(client, "user", name)) for name in ("carl", "eve"))
    ask: dict[str, Any] = {"approval": {"message": "go?"}}
    first, second = (carl.submit(actor="probe", payload={"seconds": 0}, **ask)["task_id"] for _ in range(2))
    behind = carl.submit(actor="probe", depends_on=[second])["task_id"]
    page = carl.http.get("/api/v1/approvals", params={"limit": 1}).json()
    assert page["items"][0].keys() == {"task_id", "user_id", "workflow_id", "key", "message", "since", "expires_at"}
    rest = carl.http.get("/api/v1/approvals", params={"cursor": page["next_cursor"]}).json()
    assert [each["task_id"] for each in (*page["items"], *rest["items"])] == [first, second]
    assert "next_cursor" not in rest
    assert eve.http.get("/api/v1/approvals").json()["items"] == []
    assert post(eve, f"/tasks/{first}/approve").json()["code"] == "task-not-found"
    assert post(carl, f"/tasks/{behind}/approve").json()["code"] == "not-waiting-for-approval"
    wrong = post(carl, f"/tasks/{first}/approve", {"coment": "x"})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/coment")

    assert post(carl, f"/tasks/{first}/approve").json()["approval"]["decided_by"] == "carl"
    assert carl.finished(first)["status"] == "completed"
    assert post(carl, f"/tasks/{second}/reject", {"comment": "no"}).json()["status"] == "cancelled"
    assert post(carl, f"/tasks/{second}/approve").json()["code"] == "already-decided"
    assert carl.finished(behind)["error"]["type"] == "DependencyFailed"
    entries = client.http.get("/api/v1/audit", params={"action": "task.reject"}).json()["items"]
    assert [(each["target"], each["user_id"]) for each in entries].count((second, "carl")) == 1


def test_what_does_not_fit_is_invalid_input_that_names_its_place(client: Client) -> None:
    workflow = submit(
        client,
        probe("a", payload={"result": {"word": "no number"}}),
        probe("missing", "a", payload={"result": {"$from": "a", "path": "/nothing"}}),
        probe("misfit", "a", payload={"seconds": {"$from": "a"}}),
        failure_threshold=2,
    )
    over = finished(client, workflow["workflow_id"])
    assert (over["status"], over["failures"]) == ("escalated", 2)
    missing, misfit = task_of(client, over, "missing")["error"], task_of(client, over, "misfit")["error"]
    assert (missing["type"], missing["kind"], missing["details"]["pointer"]) == ("InvalidInput", "permanent", "/result")
    assert (misfit["type"], misfit["kind"], misfit["details"]["pointer"]) == ("InvalidInput", "permanent", "/seconds")
    path = f"/workflows/{workflow['workflow_id']}"
    assert post(client, f"{path}/resume", {"retry": "all"}).json()["errors"][0]["pointer"] == "/retry"
    resumed = post(client, f"{path}/resume", {"retry": "none"})
    assert (resumed.status_code, resumed.json()["status"]) == (202, "failed")
    assert post(client, f"{path}/resume").json()["code"] == "not-escalated"
    assert post(client, f"{path}/cancel").json()["code"] == "not-cancellable"


def test_joining_cancelling_and_what_comes_too_late(client: Client) -> None:
    workflow = submit(client, probe("later", delay_seconds=3600))
    workflow_id = workflow["workflow_id"]
    joined = client.submit(actor="probe", payload={"seconds": 0}, workflow_id=workflow_id)
    client.finished(joined["task_id"])
    assert read(client, workflow_id)["counts"] == {"total": 2, "live": 1, "completed": 1, "dead": 0, "cancelled": 0}
    cancelled = post(client, f"/workflows/{workflow_id}/cancel")
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    assert post(client, f"/workflows/{workflow_id}/cancel").status_code == 200
    late = post(client, "/tasks", {"actor": "probe", "workflow_id": workflow_id})
    assert (late.status_code, late.json()["code"]) == (409, "workflow-cancelled")
    retried = client.retry(workflow["nodes"][0]["task_id"])
    assert (retried.status_code, retried.json()["code"]) == (409, "workflow-cancelled")
    label = client.submit(actor="probe", payload={"seconds": 0}, workflow_id=str(uuid4()))
    assert client.finished(label["task_id"])["status"] == "completed", "any other name is a label"


def test_plain_tasks_refer_to_each_other_by_their_ids(client: Client) -> None:
    first = client.submit(actor="probe", payload={"result": {"n": 1}})["task_id"]
    refers = {"result": {"$from": first}}
    second = client.submit(actor="probe", payload=refers, depends_on=[{"key": first, "on": "ended"}])
    task = client.finished(second["task_id"])
    assert task["status"] == "completed"
    assert task["depends_on"] == [first]
    assert task["result"]["echo"]["echo"] == {"n": 1}
    plain = client.submit(actor="probe", payload=refers)
    assert client.finished(plain["task_id"])["payload"] == refers, "without depends_on it is data"
    wrong = post(client, "/tasks", {"actor": "probe", "payload": refers, "depends_on": [second["task_id"]]})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/payload/result/$from")


def test_the_example_of_the_empty_view_completes(client: Client) -> None:
    view = (PROJECT / "web/src/views/Workflows.svelte").read_text()
    example = view.partition("const EXAMPLE = `")[2].partition("`;")[0]
    answer = post(client, "/workflows", json.loads(example))
    assert answer.status_code == 201, answer.text
    assert finished(client, answer.json()["workflow_id"])["status"] == "completed"

"""One task on its way through every process, seen by a client."""

import re

import pytest

from tests.support.installation import Client, Windlass
from tests.support.waiting import wait_until

TASK_FIELDS = {
    "task_id", "actor", "task_type", "provider", "queue", "lane", "status", "priority", "payload", "result", "error",
    "progress", "attempt", "retry_count", "max_retries", "interrupt_count", "available_at", "expires_at",
    "timeout_seconds", "created_at", "updated_at", "started_at", "completed_at", "worker_id", "heartbeat_at",
    "lease_expires_at", "cancel_requested", "user_id", "tags", "project_id", "workflow_id", "workflow_run_id",
    "interaction_id", "parent_task_id", "depends_on", "dedupe_key", "provider_job_id", "exit_code",
    "held", "concurrency_key", "usage", "workflow_key", "approval", "schedule_id",
}  # fmt: skip


@pytest.fixture
def client(running_windlass: Windlass) -> Client:
    """Of one Windlass for all tests."""
    return running_windlass.client


def test_a_task_is_accepted_run_streamed_and_kept(client: Client) -> None:
    response = client.http.post(
        "/api/v1/tasks", json={"actor": "probe", "payload": {"seconds": 0.6, "steps": 3, "result": {"n": 1}}}
    )
    accepted = response.json()
    assert response.status_code == 201
    assert response.headers["location"] == f"/api/v1/tasks/{accepted['task_id']}"
    assert set(accepted) == TASK_FIELDS
    assert accepted["status"] == "queued"
    assert accepted["progress"]["message"] == "Queued"

    with client.stream(accepted["task_id"]) as stream:
        events = list(stream)
    assert [data["status"] for _, name, data in events if name == "progress"][:2] == ["queued", "running"]
    assert [data["progress"]["message"] for _, _, data in events if "progress" in data][-1] == "Step 3 of 3"
    assert events[-1][1] == "complete"
    assert events[-1][2]["result"]["echo"] == {"n": 1}

    finished = client.finished(accepted["task_id"])
    assert finished["status"] == "completed"
    assert finished["attempt"] == 1
    assert finished["result"]["worker_id"] == finished["worker_id"]
    assert client.story(accepted["task_id"]) == ["submit", "claim", "complete"]
    assert [event["seq"] for event in client.events(accepted["task_id"])] == list(
        range(1, len(client.events(accepted["task_id"])) + 1)
    )


def test_a_stream_resumes_at_every_event_and_says_when_all_is_read(client: Client) -> None:
    task_id = client.submit(payload={"seconds": 0.4, "steps": 2, "fail_times": 1, "error_type": "TimedOut"})["task_id"]
    client.finished(task_id)
    with client.stream(task_id) as stream:
        whole = list(stream)
    for position, (seq, _, _) in enumerate(whole[:-1], start=1):
        with client.stream(task_id, after=seq) as stream:
            assert list(stream) == whole[position:]
    url = f"/api/v1/tasks/{task_id}/stream"
    last = whole[-1][0]
    assert client.http.get(url, headers={"Last-Event-ID": str(last)}).status_code == 204
    for nonsense in ("one", str(last + 1), "-1"):
        refused = client.http.get(url, headers={"Last-Event-ID": nonsense})
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid-event-id")


def test_a_client_that_leaves_cancels_nothing(client: Client) -> None:
    task_id = client.submit(payload={"seconds": 1, "steps": 5})["task_id"]
    with client.stream(task_id) as stream:
        next(stream)
    assert client.finished(task_id)["status"] == "completed"


def test_bad_input_gets_a_problem_that_names_the_field(client: Client) -> None:
    def refusal(**fields: object) -> tuple[int, str, list[str]]:
        response = client.http.post("/api/v1/tasks", json=fields)
        assert response.headers["content-type"] == "application/problem+json"
        problem = response.json()
        assert problem["type"] == f"/problems/{problem['code']}"
        assert problem["request_id"]
        return response.status_code, problem["code"], [error["pointer"] for error in problem.get("errors", [])]

    assert refusal(actor="poet") == (422, "unknown-actor", ["/actor"])
    assert refusal(actor="probe", provider="nobody") == (422, "unknown-provider", ["/provider"])
    assert refusal(actor="probe", payload={"seconds": -1, "colour": "red"}) == (
        422,
        "invalid-payload",
        ["/payload/seconds", "/payload/colour"],
    )
    assert refusal(payload={}, priority=12) == (422, "invalid-task", ["/actor", "/priority"])
    malformed = client.http.post("/api/v1/tasks", content=b"{not json")
    assert (malformed.status_code, malformed.json()["code"]) == (400, "malformed-json")
    deep: object = 0
    for _ in range(100):
        deep = [deep]
    assert refusal(actor="probe", payload={"result": deep})[:2] == (422, "nested-too-deep")
    unreadable = client.http.get("/api/v1/tasks", params={"tag": "\0"})
    assert (unreadable.status_code, unreadable.json()["code"]) == (422, "unstorable-value")
    missing = client.http.get("/api/v1/tasks/01890000-0000-7000-8000-000000000000")
    assert (missing.status_code, missing.json()["code"]) == (404, "task-not-found")


def test_without_a_valid_key_nothing_but_health_answers(client: Client) -> None:
    for key in ("none", "wl_tests1_wrongwrongwrongwrongwrong", "wl__"):
        stranger = client.with_key(key)
        refused = stranger.http.get("/api/v1/tasks")
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized")
        assert stranger.http.get("/health/live").status_code == 200
        assert stranger.http.get("/health/ready").status_code == 200
        assert set(stranger.http.get("/health").json()) == {"status", "timestamp"}


def test_health_tells_each_part(client: Client) -> None:
    client.wait_until_healthy()
    document = client.http.get("/health").json()
    assert set(document["components"]) >= {"postgres", "broker", "dispatcher", "orchestrator", "janitor", "workers"}
    for server in ("postgres", "broker"):
        assert re.match(r"\d+\.\d+", document["components"][server]["version"]), "that of the server itself"
    wait_until("none is unaccounted", lambda: "windlass_unaccounted_tasks 0.0" in client.http.get("/metrics").text)


@pytest.mark.parametrize("wait", [0, 50])
def test_waiting_for_the_end_is_up_to_the_client(client: Client, wait: float) -> None:
    response = client.http.post("/api/v1/tasks?wait=" + str(wait), json={"actor": "probe", "payload": {"seconds": 0.3}})
    assert response.status_code == (200 if wait else 202)
    assert (response.json()["status"] == "completed") is bool(wait)

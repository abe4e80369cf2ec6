"""Lists, the queues' figures, dead letters and bulk changes, as clients with each kind of key meet them."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

from tests.support.installation import ENDED, Client, Task, Windlass
from tests.support.waiting import wait_until
from windlass.shared.store.access import keys

USER_KEY = "wl_ann111_abcdefghijklmnopqrstuvwxyz"
VIEWER_KEY = "wl_eye111_abcdefghijklmnopqrstuvwxyz"
DIES_ONCE = {"outcome": "permanent", "fail_times": 1}
DIES_TWICE = {"outcome": "permanent", "fail_times": 2}


@pytest.fixture(scope="module")
def windlass(running_windlass: Windlass) -> Windlass:
    """One for all these tests: each keeps to tasks with a tag of its own."""
    return running_windlass


@pytest.fixture(scope="module")
def client(windlass: Windlass) -> Client:
    return windlass.client


def key_for(windlass: Windlass, key: str, role: str, user_id: str) -> Client:
    async def write() -> None:
        connection = await asyncpg.connect(windlass.environment["WINDLASS_DATABASE_URL"])
        await keys.ensure(connection, key, role=role, user_id=user_id, created_by="test")
        await connection.close()

    asyncio.run(write())
    return windlass.client.with_key(key)


@pytest.fixture(scope="module")
def ann(windlass: Windlass) -> Client:
    return key_for(windlass, USER_KEY, "user", "ann")


@pytest.fixture(scope="module")
def viewer(windlass: Windlass) -> Client:
    return key_for(windlass, VIEWER_KEY, "viewer", "eye")


def ended(client: Client, tag: str, number: int) -> list[Task]:
    wait_until(f"{number} ended", lambda: len(client.tasks(tag=tag, status=sorted(ENDED))) == number)
    return client.tasks(tag=tag)


def test_who_comes_back_hears_what_has_ended_since(client: Client, windlass: Windlass) -> None:
    ben = key_for(windlass, "wl_ben111_abcdefghijklmnopqrstuvwxyz", "user", "ben")
    before = datetime.now(UTC)
    payloads: list[dict[str, Any]] = [{}, {}, {"outcome": "permanent"}]
    ids = [ben.submit(tags=["since"], payload=payload)["task_id"] for payload in payloads]
    cancelled, left = (ben.submit(tags=["since"], delay_seconds=3600)["task_id"] for _ in range(2))
    ben.cancel(cancelled)
    for task_id in ids:
        ben.finished(task_id)
    told = ben.http.get("/api/v1/overview", params={"since": before.isoformat()}).raise_for_status().json()
    assert set(told) == {"since", "states", "ended", "died", "cost_usd", "waiting_for_you"}
    assert told["ended"] == {"completed": 2, "dead": 1, "cancelled": 1}
    assert told["died"] == [{"error_type": ben.get(ids[2])["error"]["type"], "count": 1}]
    assert (told["states"]["queued"], told["cost_usd"], told["waiting_for_you"]) == (1, 0, [])
    assert datetime.fromisoformat(told["since"]) == before
    assert ben.http.get("/api/v1/overview").json()["ended"] == told["ended"], "a day, if nobody says since when"
    later = ben.get(ids[2])["completed_at"]
    assert ben.http.get("/api/v1/overview", params={"since": later}).json()["ended"]["dead"] == 0
    everybody = client.http.get("/api/v1/overview", params={"since": before.isoformat()}).json()
    assert everybody["ended"]["completed"] >= 2
    ben.cancel(left)


def bulk(client: Client, path: str, **body: Any) -> str:
    response = client.http.post(f"/api/v1{path}", json=body)
    assert response.status_code == 202, response.text
    assert set(response.json()) == {"bulk_id", "matched"}
    return f"/api/v1/bulk/{response.json()['bulk_id']}"


def until_state(client: Client, path: str, state: str) -> dict[str, Any]:
    return wait_until(state, lambda: (job := client.http.get(path).json())["state"] == state and job)


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("stauts=dead", "/stauts"),
        ("cursor=yesterday", "/cursor"),
        ("limit=501", "/limit"),
        ("limit=0", "/limit"),
        ("q=ab", "/q"),
        ("status=sleeping", "/status"),
        ("lane=middle", "/lane"),
        ("created_after=yesterday", "/created_after"),
        ("parent_task_id=7", "/parent_task_id"),
    ],
)
@pytest.mark.parametrize("path", ["tasks", "queues/dlq"])
def test_a_query_that_cannot_be_meant_is_refused_by_name(client: Client, path: str, query: str, pointer: str) -> None:
    response = client.http.get(f"/api/v1/{path}?{query}")
    assert response.status_code == 422
    assert [error["pointer"] for error in response.json()["errors"]] == [pointer]


@pytest.mark.parametrize(
    ("path", "body", "pointer"),
    [
        ("tasks/bulk", {"action": "cancel", "filter": {}}, "/filter"),
        ("tasks/bulk", {"action": "cancel", "filter": {"status": None}}, "/filter"),
        ("tasks/bulk", {"action": "cancel", "filter": {"colour": "red"}}, "/filter/colour"),
        ("tasks/bulk", {"action": "cancel", "filter": {"tag": []}}, "/filter/tag"),
        ("tasks/bulk", {"action": "cancel", "filter": {"user_id": "a\0"}}, "/filter/user_id"),
        ("tasks/bulk", {"action": "delete", "all": True}, "/action"),
        ("tasks/bulk", {"all": True}, "/action"),
        ("queues/dlq/revive", {}, "/filter"),
        ("queues/dlq/revive", {"all": True, "canary": 0}, "/canary"),
    ],
)
def test_a_change_that_cannot_be_meant_is_refused_by_name(
    client: Client, path: str, body: dict[str, Any], pointer: str
) -> None:
    response = client.http.post(f"/api/v1/{path}", json=body)
    assert response.status_code == 422
    assert [error["pointer"] for error in response.json()["errors"]] == [pointer]


def test_pages_lead_to_the_end_and_carry_more_when_asked(client: Client, ann: Client) -> None:
    payload = {"fail_times": 1, "error_type": "WorkerLost", "result": 7}
    ids = client.submit_many([{"tags": ["paged"], "payload": payload, "user_id": "ann"} for _ in range(5)])
    ended(client, "paged", 5)
    seen: list[Task] = []
    cursor: dict[str, str] = {}
    while True:
        page = ann.http.get("/api/v1/tasks", params={"tag": "paged", "limit": 2, **cursor}).json()
        seen += page["items"]
        if "next_cursor" not in page:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert [item["task_id"] for item in seen] == sorted(ids, reverse=True)
    assert not any({"payload", "result", "error_history"} & set(item) for item in seen)

    for reader, traces in ((client, True), (ann, False)):
        (item,) = reader.tasks(tag="paged", full=True, limit=1)
        assert (item["payload"], item["result"]["echo"]) == (payload, 7)
        (error,) = item["error_history"]
        assert (error["type"], error["attempt"]) == ("WorkerLost", 1)
        assert (error["stack_trace"] is not None) == traces
    assert ann.tasks(user_id="admin") == []


def test_the_queue_s_figures_are_everybody_s_or_a_user_s_own(client: Client, ann: Client) -> None:
    client.submit_many([{"tags": ["waiting"], "delay_seconds": 3600}] * 2)
    ann.submit_many([{"tags": ["waiting"], "delay_seconds": 3600}])
    everybody, own = (each.http.get("/api/v1/queues/status").json() for each in (client, ann))
    queue, mine = (
        next(each for each in figures["queues"] if each["provider"] == "probe") for figures in (everybody, own)
    )
    assert set(queue) == {
        "queue", "actor", "provider", "fresh", "retry", "scheduled", "blocked", "running", "dead",
        "oldest_age_seconds", "ended", "retry_ratio", "workers",
    }  # fmt: skip
    assert (queue["queue"], queue["workers"], queue["retry_ratio"]) == ("probe.probe", 1, 0.3)
    assert queue["scheduled"] - mine["scheduled"] == 2
    assert everybody["states"]["queued"] - own["states"]["queued"] == 2
    assert (everybody["retry_ratio"], set(own["states"])) == (0.3, set(everybody["states"]))


def test_who_may_change_many_tasks(client: Client, ann: Client, viewer: Client) -> None:
    client.submit_many([{"tags": ["shared"], "delay_seconds": 3600}] * 2)
    (own,) = ann.submit_many([{"tags": ["shared"], "delay_seconds": 3600}])
    change = {"action": "cancel", "filter": {"tag": ["shared"]}}
    assert viewer.http.post("/api/v1/tasks/bulk", json=change).status_code == 403
    assert viewer.http.post("/api/v1/queues/dlq/revive", json={"all": True}).status_code == 403
    asked = [each.http.post("/api/v1/tasks/bulk", json={**change, "dry_run": True}) for each in (client, ann)]
    assert [(answer.status_code, answer.json()) for answer in asked] == [(200, {"matched": 3}), (200, {"matched": 1})]

    job = until_state(ann, path := bulk(ann, "/tasks/bulk", **change), "finished")
    assert (job["action"], job["filter"], job["changed"]) == ("cancel", {"tag": ["shared"]}, 1)
    assert [task["task_id"] for task in client.tasks(tag="shared", status="cancelled")] == [own]
    assert viewer.http.get(path).status_code == 200
    foreign = bulk(client, "/tasks/bulk", **change)
    refused = ann.http.get(foreign)
    assert (refused.status_code, refused.json()["code"]) == (404, "bulk-not-found")
    until_state(client, foreign, "finished")


def test_what_was_cancelled_is_no_dead_letter(ann: Client) -> None:
    (own,) = ann.submit_many([{"tags": ["unwanted"], "delay_seconds": 3600}])
    ann.cancel(own)
    answer = ann.http.post("/api/v1/queues/dlq/revive", json={"all": True, "dry_run": True})
    assert (answer.status_code, answer.json()) == (200, {"matched": 0})
    assert ann.http.get("/api/v1/queues/dlq?status=cancelled").json() == {"items": []}


def test_dead_letters_are_listed_grouped_and_revived_behind_a_canary(client: Client) -> None:
    ids = client.submit_many([{"tags": ["mended"], "payload": DIES_ONCE}] * 4)
    ended(client, "mended", 4)
    letters = client.http.get("/api/v1/queues/dlq", params={"tag": "mended"}).json()["items"]
    assert [letter["task_id"] for letter in letters] == sorted(ids, reverse=True)
    assert all(letter["payload"] == DIES_ONCE and len(letter["error_history"]) == 1 for letter in letters)
    (kind,) = client.http.get("/api/v1/queues/dlq", params={"tag": "mended", "group_by": "error"}).json()["items"]
    assert (kind["error_type"], kind["count"], kind["example_task_id"]) == ("InvalidInput", 4, max(ids))

    wanted = {"tag": "mended", "fingerprint": kind["fingerprint"]}
    path = bulk(client, "/queues/dlq/revive", filter=wanted, canary=1)
    job = until_state(client, path, "finished")
    assert (job["matched"], job["changed"]) == (4, 4)
    assert job["canary"] == {"wanted": 1, "task_ids": [min(ids)]}
    tasks = ended(client, "mended", 4)
    assert {task["status"] for task in tasks} == {"completed"}
    canary = next(task for task in tasks if task["task_id"] == min(ids))
    others = [client.events(task_id) for task_id in ids if task_id != min(ids)]
    revived = [next(event["at"] for event in events if event["type"] == "revive") for events in others]
    assert canary["completed_at"] < min(revived), "the rest waits for the canary"


def test_a_canary_that_dies_again_stops_the_revival(client: Client) -> None:
    canaries = client.submit_many([{"tags": ["hopeless"], "payload": DIES_ONCE}])
    canaries += client.submit_many([{"tags": ["hopeless"], "payload": DIES_TWICE}])
    rest = client.submit_many([{"tags": ["hopeless"], "payload": DIES_ONCE}] * 3)
    ended(client, "hopeless", 5)
    path = bulk(client, "/queues/dlq/revive", filter={"tag": "hopeless"}, canary=2)
    job = until_state(client, path, "stopped")
    assert sorted(job["canary"]["task_ids"]) == sorted(canaries)
    assert job["reason"].startswith(f"the canary {canaries[1]} is dead")
    assert (job["done"], job["changed"]) == (2, 2)
    assert [client.story(task_id).count("revive") for task_id in rest] == [0, 0, 0]

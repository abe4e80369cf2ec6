"""Flow control as clients and operators meet it: limits changed on the way, a storm of 429s, a breaker, and why."""

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.acceptance.conftest import a_windlass_apart
from tests.support.installation import Client, Windlass
from tests.support.servers.databases import ask, execute
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until
from windlass.shared.settings import DEFAULT_PROVIDERS

NAMES = ("limited", "stormy", "broken", "steered", "unlucky", "shown", "resumed")
CONFIG = "".join(f'[providers.{name}]\nactor = "probe"\nlimit = {3 if name != "shown" else 1}\n' for name in NAMES)


@pytest.fixture(scope="module")
def windlass(
    servers: Servers, migrated_template: str, management: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Windlass]:
    """One for the whole file: each test has a provider of its own."""
    directory = tmp_path_factory.mktemp("flow")
    with a_windlass_apart(
        servers, migrated_template, management, directory, config=CONFIG, WINDLASS_BREAKER_OPEN_SECONDS="10"
    ) as windlass:
        windlass.start_all()
        yield windlass


@pytest.fixture
def client(windlass: Windlass) -> Client:
    return windlass.client


def user_of(windlass: Windlass, role: str) -> Client:
    key = f"wl_{role}1234_{'k' * 32}"
    execute(
        windlass.environment["WINDLASS_DATABASE_URL"],
        f"""
        INSERT INTO api_keys (key_id, secret_hash, role, user_id)
        VALUES ('{role}1234', sha256('{"k" * 32}'), '{role}', '{role}') ON CONFLICT DO NOTHING
        """,
    )
    return windlass.client.with_key(key)


def provider(client: Client, name: str) -> dict[str, Any]:
    document: dict[str, Any] = client.http.get(f"/api/v1/providers/{name}").raise_for_status().json()
    return document


def change(client: Client, name: str, **changes: Any) -> dict[str, Any]:
    response = client.http.patch(f"/api/v1/providers/{name}", json=changes)
    document: dict[str, Any] = response.raise_for_status().json()
    return document


def why(client: Client, task_id: str) -> dict[str, Any]:
    document: dict[str, Any] = client.http.get(f"/api/v1/tasks/{task_id}/why").raise_for_status().json()
    return document


def most_at_once(windlass: Windlass, name: str, since: float = 0) -> int:
    """How many attempts of a provider ran at the same time, by their events."""
    rows = ask(
        windlass.environment["WINDLASS_DATABASE_URL"],
        """
        SELECT e.type = 'claim' AS starts FROM task_events e JOIN tasks t USING (task_id)
        WHERE t.provider = $1 AND e.type IN ('claim', 'complete', 'retry', 'bury') AND e.at > to_timestamp($2)
        ORDER BY e.at, e.xid
        """,
        name,
        since,
    )
    running, most = 0, 0
    for row in rows:
        running += 1 if row["starts"] else -1
        most = max(most, running)
    return most


def test_a_limit_is_in_force_within_a_second_and_never_exceeded(windlass: Windlass, client: Client) -> None:
    ids = client.submit_many([{"provider": "limited", "payload": {"seconds": 1}}] * 36)
    wait_until("three at once", lambda: provider(client, "limited")["slots"]["held"] == 3)
    assert change(client, "limited", limit=0)["limit"] == {"configured": 3, "override": 0, "effective": 0}
    lowered = time.time()
    wait_until("nothing runs", lambda: provider(client, "limited")["slots"]["held"] == 0)
    waiting = client.tasks(provider="limited", status="queued")
    assert why(client, waiting[0]["task_id"])["reason"] == "provider-limit"
    assert most_at_once(windlass, "limited") == 3
    assert most_at_once(windlass, "limited", since=lowered) == 0, "once it is answered nothing starts any more"
    raised = time.time()
    change(client, "limited", limit=6)
    wait_until("six at once", lambda: provider(client, "limited")["slots"]["held"] == 6)
    change(client, "limited", limit=None)
    tasks = [client.finished(task_id) for task_id in ids]
    assert {(task["status"], task["retry_count"], task["attempt"]) for task in tasks} == {("completed", 0, 1)}
    assert most_at_once(windlass, "limited", since=raised) == 6


def test_a_hundred_tasks_in_a_storm_of_429s_make_a_handful_of_calls_and_all_complete(client: Client) -> None:
    """The first three calls are told 429, before anybody knew."""
    stormy = {"error_type": "RateLimited", "retry_after": 0.3, "fail_times": 1}
    first = client.submit_many([{"provider": "stormy", "priority": 0, "payload": stormy}] * 3)
    ids = first + client.submit_many([{"provider": "stormy"}] * 97)
    tasks = [client.finished(task_id) for task_id in ids]
    assert {(task["status"], task["retry_count"]) for task in tasks} == {("completed", 0)}
    assert sum(task["attempt"] for task in tasks) <= 103
    events = client.http.get("/api/v1/providers/stormy/events").json()["items"]
    assert [event["type"] for event in events][-1] == "pause"
    assert provider(client, "stormy")["pause"] is None


def test_a_task_that_is_always_told_429_is_buried_after_20_while_the_others_pass(client: Client) -> None:
    unlucky = {"outcome": "transient", "error_type": "RateLimited", "retry_after": 0.02}
    task_id = client.submit(provider="unlucky", payload=unlucky)["task_id"]
    others = []
    while client.get(task_id)["status"] != "dead":
        others.append(client.submit(provider="unlucky", wait=40)["status"])
    assert set(others) == {"completed"}
    task = client.get(task_id)
    assert task["attempt"] == 20
    assert task["error"]["type"] == "RateLimited"


@pytest.mark.parametrize("word", [False, None])
def test_an_operator_ends_a_pause_that_a_429_began_and_the_audit_log_says_so(client: Client, word: bool | None) -> None:
    told = {"outcome": "transient", "error_type": "RateLimited", "retry_after": 600}
    client.submit(provider="resumed", payload=told)
    wait_until("paused", lambda: provider(client, "resumed")["pause"] is not None)
    until, waiting = provider(client, "resumed")["pause"]["until"], client.submit(provider="resumed")["task_id"]
    assert why(client, waiting)["reason"] == "rate-limited-until"
    assert change(client, "resumed", paused=word)["pause"] is None
    assert client.finished(waiting)["status"] == "completed"
    (entry, *_) = client.http.get("/api/v1/audit", params={"action": "provider.change"}).json()["items"]
    assert (entry["target"], entry["details"]["paused"]) == ("resumed", word)
    assert entry["details"]["ended_pause"]["until"] == until


def test_a_user_s_probe_pauses_nobody(windlass: Windlass) -> None:
    told = {"actor": "probe", "payload": {"error_type": "RateLimited", "retry_after": 600, "fail_times": 1}}
    refused = user_of(windlass, "user").http.post("/api/v1/tasks", json=told)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (403, "/payload/error_type")
    assert provider(windlass.client, "probe")["pause"] is None


def test_a_breaker_opens_for_everybody_and_one_trial_closes_it(client: Client) -> None:
    failing = {"outcome": "transient", "error_type": "ServiceUnavailable"}
    client.submit_many([{"provider": "broken", "max_retries": 0, "payload": failing}] * 10)
    wait_until("open", lambda: provider(client, "broken")["breaker"]["state"] == "open")
    waiting = client.submit(provider="broken")["task_id"]
    answer = why(client, waiting)
    assert (answer["reason"], answer["details"]["until"] is not None) == ("breaker-open", True)
    health = client.http.get("/health").json()
    assert (health["status"], "broken" in health["components"]["breakers"]["detail"]) == ("degraded", True)
    assert client.finished(waiting)["retry_count"] == 0
    wait_until("closed", lambda: provider(client, "broken")["breaker"]["state"] == "closed")
    events = client.http.get("/api/v1/providers/broken/events").json()["items"]
    assert [event["type"] for event in reversed(events)] == ["open", "half-open", "close"]
    page = client.http.get("/api/v1/providers/broken/events", params={"limit": 2}).json()
    rest = client.http.get("/api/v1/providers/broken/events", params={"cursor": page["next_cursor"]}).json()
    assert page["items"] + rest["items"] == events
    assert events[-1]["reason"] == "10 of the last 10 results were failures"


def test_an_operator_pauses_a_provider_and_opens_its_breaker(client: Client) -> None:
    change(client, "steered", paused=True)
    task_id = client.submit(provider="steered")["task_id"]
    assert why(client, task_id)["reason"] == "provider-paused"
    change(client, "steered", breaker="open", paused=None)
    assert why(client, task_id)["reason"] == "breaker-open"
    assert provider(client, "steered")["breaker"]["until"] is None
    change(client, "steered", breaker=None)
    assert client.finished(task_id)["status"] == "completed"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"limit": -1}, "/limit"),
        ({"limit": "3"}, "/limit"),
        ({"limit": 1.5}, "/limit"),
        ({"limit": True}, "/limit"),
        ({"limit": 10**12}, "/limit"),
        ({"paused": "yes"}, "/paused"),
        ({"breaker": "ajar"}, "/breaker"),
        ({"rate": {"limit": "5", "per_seconds": 1}}, "/rate/limit"),
        ({"rate": {"limit": 5}}, "/rate/per_seconds"),
        ({"speed": 1}, "/speed"),
        ([], ""),
    ],
)
def test_a_change_that_makes_no_sense_is_refused_by_its_field(client: Client, body: Any, pointer: str) -> None:
    response = client.http.patch("/api/v1/providers/shown", json=body)
    assert response.status_code == 422, response.text
    problem = response.json()
    assert (problem["code"], [error["pointer"] for error in problem["errors"]]) == ("invalid-provider", [pointer])


def test_malformed_json_and_unknown_providers_are_told_apart(client: Client) -> None:
    assert client.http.patch("/api/v1/providers/shown", content=b"{").status_code == 400
    for response in (
        client.http.get("/api/v1/providers/nobody"),
        client.http.patch("/api/v1/providers/nobody", json={"limit": 1}),
        client.http.get("/api/v1/providers/nobody/events"),
    ):
        assert (response.status_code, response.json()["code"]) == (404, "provider-not-found")


def test_who_may_see_and_change_what(windlass: Windlass, client: Client) -> None:
    holder = client.submit(provider="shown", payload={"seconds": 60})["task_id"]
    client.wait_until(holder, "running")
    viewer, user = user_of(windlass, "viewer"), user_of(windlass, "user")
    for reader in (client, viewer):
        (only,) = provider(reader, "shown")["slots"]["holders"]
        assert only["task_id"] == holder
        assert set(only) == {"task_id", "worker_id", "since"}
    assert provider(user, "shown")["slots"] == {"held": 1, "holders": None}
    names = [item["name"] for item in user.http.get("/api/v1/providers").json()["items"]]
    assert names == sorted([*NAMES, *DEFAULT_PROVIDERS])
    for caller in (viewer, user):
        assert caller.http.patch("/api/v1/providers/shown", json={"limit": 9}).status_code == 403
    assert user.http.get("/api/v1/providers/shown/events").status_code == 403
    waiting = user.submit(provider="shown")["task_id"]
    assert why(user, waiting)["details"] == {"limit": 1, "held": 1, "holders": None}
    assert why(client, waiting)["details"]["holders"][0]["task_id"] == holder
    assert user.http.get(f"/api/v1/tasks/{holder}/why").status_code == 404
    client.cancel(holder)
    assert client.finished(waiting)["status"] == "completed"

"""Webhooks over REST, by the clients, by the command line and as their page says, in one installation, with a receiver
that verifies every delivery by the standard's library."""

import asyncio
import os
import re
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import windlass as library
from tests.acceptance.conftest import a_windlass_apart
from tests.support.an_api import new_key
from tests.support.command_line import Run, run
from tests.support.failpoints.arming import Failpoints
from tests.support.failpoints.catalogue import OF_WEBHOOKS
from tests.support.installation import NOBODY, Client, Windlass
from tests.support.pages import files_of, lines_typed, page
from tests.support.servers.databases import ask, execute
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until
from tests.support.webhook_receiver import Received, Receiver, receiving
from windlass.services.laptop.ports import free_port

__all__ = ["run"]

GREETING = """
from windlass import actor


@actor(throws=(ValueError,))
def greet(name: str, size: int = 0) -> str:
    if name == "nobody":
        raise ValueError("there is nobody to greet")
    return f"hello {name}" + "!" * size
"""
CONFIG = """
[network]
allow_private = ["127.0.0.1"]

[actors.webhook.retries]
other = [0.05, 0.05, 0.05, 0.05, 3600]
"""


@pytest.fixture(scope="module")
def windlass(
    servers: Servers, migrated_template: str, management: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Windlass]:
    directory: Path = tmp_path_factory.mktemp("webhooks")
    (directory / "greeting.py").write_text(GREETING)
    settings = {
        "WINDLASS_ACTORS": str(directory / "greeting.py"),
        "WINDLASS_QUEUES": "probe.probe,webhook.http,own",
        **Failpoints(directory / "failpoints").environment,
    }
    with a_windlass_apart(
        servers, migrated_template, management, directory, config=CONFIG, actors=("probe", "webhook"), **settings
    ) as windlass:
        windlass.start_all()
        known = {"actor": "greet", "payload": {"name": "ann"}}
        path = "/api/v1/tasks"
        wait_until("greet is known", lambda: windlass.client.http.post(path, json=known).status_code == 201)
        wait_until("greeted", lambda: not windlass.client.tasks(actor="greet", status=["queued", "running"]))
        yield windlass


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def client(windlass: Windlass) -> Client:
    return windlass.client


@pytest.fixture(scope="module")
def anns_key(windlass: Windlass) -> str:
    return new_key(windlass.client, "user", "ann")


@pytest.fixture(scope="module")
def ann(windlass: Windlass, anns_key: str) -> Client:
    return windlass.client.with_key(anns_key)


class Hook:
    """A webhook at a path of the receiver's."""

    def __init__(self, client: Client, receiver: Receiver, path: str, *events: str, **fields: Any) -> None:
        self.client, self.receiver, self.path = client, receiver, path
        body = {"url": receiver.at(path), "events": list(events), **fields}
        made = client.http.post("/api/v1/webhooks", json=body)
        assert made.status_code == 201, made.text
        self.document = made.json()
        receiver.secrets[path] = self.document["secret"]
        self.at = f"/api/v1/webhooks/{self.document['webhook_id']}"
        assert made.headers["Location"] == self.at

    def post(self, action: str, status: int = 200, **body: Any) -> Any:
        answer = self.client.http.post(f"{self.at}/{action}", json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    def read(self) -> dict[str, Any]:
        document: dict[str, Any] = self.client.http.get(self.at).raise_for_status().json()
        return document

    def deliveries(self, **query: str) -> list[dict[str, Any]]:
        answer = self.client.http.get(f"{self.at}/deliveries", params=query).raise_for_status().json()
        items: list[dict[str, Any]] = answer["items"]
        return items[::-1]

    def states(self) -> list[str]:
        return [each["state"] for each in self.deliveries()]

    def until(self, *states: str) -> None:
        wait_until(f"deliveries are {states}", lambda: self.states() == list(states))

    def got(self, number: int) -> list[Received]:
        received = wait_until(
            f"{number} deliveries", lambda: got if len(got := self.receiver.got(self.path)) >= number else None
        )
        assert [each.fault for each in received] == [None] * len(received), "each is verified"
        return received


def greet(client: Client, tags: tuple[str, ...] = (), **payload: Any) -> dict[str, Any]:
    return client.submit(actor="greet", payload={"name": "ann", **payload}, tags=tags, wait=50)


def whole(client: Client, delivery_id: str) -> dict[str, Any]:
    document: dict[str, Any] = client.http.get(f"/api/v1/deliveries/{delivery_id}").raise_for_status().json()
    return document


def test_what_was_subscribed_to_arrives_and_is_verified(ann: Client, client: Client, receiver: Receiver) -> None:
    hook = Hook(ann, receiver, "/own", "task.completed", "task.dead", "project.*")
    all_of_it = Hook(client, receiver, "/all", "task.*")
    done = greet(ann)
    died = greet(ann, name="nobody")
    greet(client)
    hook.until("delivered", "delivered")
    first, second = sorted(hook.got(2), key=lambda each: each.body["timestamp"])
    assert (first.body["type"], first.body["data"]["task_id"]) == ("task.completed", done["task_id"])
    assert first.body["data"]["result"] == "hello ann"
    assert (second.body["type"], second.body["data"]["error"]["type"]) == ("task.dead", "ValueError")
    assert second.body["data"]["task_id"] == died["task_id"]
    assert "stack_trace" not in second.raw
    owners = {each.body["data"]["user_id"] for each in all_of_it.got(3)}
    assert owners == {"ann", "admin"}, "an admin's hears of everybody's"
    (delivery,) = [each for each in hook.deliveries() if each["delivery_id"] == first.id]
    document = whole(ann, first.id)
    assert document["body"] == first.body
    (answered,) = document["tries"]
    assert (answered["status_code"], answered["excerpt"], answered["delivered"]) == (200, "thanks", True)
    assert whole(client, first.id)["tries"][0]["excerpt"] is None, "what it answered is for its owner alone"
    assert hook.read()["last_success_at"] is not None
    carrier = ann.get(delivery["task_id"])
    assert (carrier["queue"], carrier["result"]) == ("webhook.http", {"status_code": 200})
    assert carrier["concurrency_key"] == hook.document["webhook_id"]
    ann.http.delete(hook.at)
    client.http.delete(all_of_it.at)


def test_secrets_are_shown_once_sealed_and_rotated_with_two_signatures(
    windlass: Windlass, ann: Client, receiver: Receiver
) -> None:
    hook = Hook(ann, receiver, "/rotated", "task.completed")
    old = hook.document["secret"]
    assert old.startswith("whsec_")
    assert "secret" not in hook.read()
    new = hook.post("rotate")["secret"]
    assert new != old
    greet(ann)
    assert hook.got(1)[0].signatures == 2, "and the old one still opens it"
    receiver.secrets["/rotated"] = new
    greet(ann)
    hook.got(2)
    url = windlass.environment["WINDLASS_DATABASE_URL"]
    stored = ask(url, "SELECT * FROM webhooks")
    assert not any(secret.encode() in bytes(row["secret"]) for row in stored for secret in (old, new))
    execute(url, "UPDATE webhooks SET previous_until = now()")
    greet(ann)
    assert hook.got(3)[2].signatures == 1
    ann.http.delete(hook.at)


def test_a_task_s_webhook_url_makes_an_endpoint_whose_secret_is_said_once(ann: Client, receiver: Receiver) -> None:
    url = receiver.at("/by-url")
    made = ann.http.post("/api/v1/tasks", json={"actor": "probe", "webhook_url": url, "delay_seconds": 3600})
    assert made.status_code == 201
    receiver.secrets["/by-url"] = made.json()["webhook_secret"]
    again = ann.submit(webhook_url=url, wait=50)
    assert "webhook_secret" not in again
    batch = ann.http.post("/api/v1/tasks/batch", json={"tasks": [{"actor": "probe", "webhook_url": url}]}).json()
    assert "webhook_secret" not in batch["tasks"][0]
    ann.cancel(made.json()["task_id"])
    ids = {made.json()["task_id"], again["task_id"], batch["tasks"][0]["task_id"]}

    def arrived() -> set[str]:
        return {each.body["data"]["task_id"] for each in receiver.got("/by-url") if each.fault is None}

    wait_until("all three", lambda: arrived() == ids)
    (listed,) = [each for each in ann.http.get("/api/v1/webhooks").json()["items"] if each["url"] == url]
    assert listed["events"] == []
    taken = ann.http.post("/api/v1/webhooks", json={"url": url, "events": ["task.*"]})
    assert (taken.status_code, taken.json()["code"]) == (409, "url-taken")
    ann.http.delete(f"/api/v1/webhooks/{listed['webhook_id']}")


def test_a_sick_endpoint_s_deliveries_are_held_and_released_in_order(
    ann: Client, client: Client, receiver: Receiver
) -> None:
    receiver.answer("/sick", 500, b"no " * 1000)
    hook = Hook(ann, receiver, "/sick", "task.completed")
    well = Hook(ann, receiver, "/well", "task.completed")
    greet(ann)
    wait_until("failing", lambda: hook.read()["state"] == "failing")
    later = [greet(ann)["task_id"] for _ in range(3)]
    hook.until("waiting", "held", "held", "held")
    assert len(well.got(4)) == 4, "no endpoint delays another"
    oldest = hook.deliveries()[0]
    tries = whole(ann, oldest["delivery_id"])["tries"]
    assert [each["status_code"] for each in tries] == [500] * 5
    assert len(tries[0]["excerpt"].encode()) <= 1024
    assert ann.why(hook.deliveries()[1]["task_id"])["message"].startswith("the endpoint that it delivers to")
    assert client.http.get("/api/v1/providers/http").json()["breaker"]["state"] == "closed"
    receiver.answer("/sick", 200)
    assert ann.http.post(f"/api/v1/deliveries/{oldest['delivery_id']}/redeliver").status_code == 202
    hook.until(*["delivered"] * 4)
    ids = [each.id for each in hook.got(6)]
    assert set(ids[:6]) == {oldest["delivery_id"]}, "the same id on every try"
    arrived = [each.body["data"]["task_id"] for each in hook.got(9)[6:]]
    assert sorted(arrived) == sorted(later)
    assert arrived[0] in later[:2], "in their order, two at once"
    assert hook.read()["state"] == "enabled"
    for each in (hook, well):
        ann.http.delete(each.at)


def test_gone_disabled_enabled_and_deleted(ann: Client, receiver: Receiver) -> None:
    receiver.answer("/gone", 410)
    hook = Hook(ann, receiver, "/gone", "task.completed")
    greet(ann)
    wait_until("gone", lambda: hook.read()["state"] == "gone")
    hook.until("held")
    receiver.answer("/gone", 200)
    assert hook.post("enable", replay="held")["state"] == "enabled"
    hook.until("delivered")
    assert hook.post("disable")["reason"] == "by hand"
    greet(ann)
    assert hook.states() == ["delivered", "held"]
    assert hook.read()["held"] == 1
    again = ann.http.post(f"/api/v1/deliveries/{hook.deliveries()[0]['delivery_id']}/redeliver")
    assert (again.status_code, again.json()["code"]) == (409, "webhook-disabled")
    tested = hook.post("test", 202)
    wait_until("the test", lambda: whole(ann, tested["delivery_id"])["state"] == "delivered")
    assert hook.read()["state"] == "disabled"
    hook.post("enable", replay="none")
    assert sorted(hook.states()) == ["delivered", "delivered", "failed"]
    (given_up,) = hook.deliveries(state="failed")
    assert given_up["reason"] == "not replayed"
    assert ann.http.delete(hook.at).status_code == 204
    assert ann.http.get(hook.at).status_code == 404
    assert whole(ann, given_up["delivery_id"])["state"] == "failed", "deliveries are kept"
    refused = ann.http.post(f"/api/v1/deliveries/{given_up['delivery_id']}/redeliver")
    assert (refused.status_code, refused.json()["code"]) == (409, "webhook-deleted")


def test_revoking_the_last_key_of_an_owner_disables_what_is_theirs(client: Client, receiver: Receiver) -> None:
    key = client.http.post("/api/v1/keys", json={"role": "user", "user_id": "bob"}).raise_for_status().json()
    hook = Hook(client.with_key(key["key"]), receiver, "/bob", "task.completed")
    assert client.http.delete(f"/api/v1/keys/{key['key_id']}").status_code == 200
    left = client.http.get(hook.at).json()
    assert (left["state"], left["reason"]) == ("disabled", "its owner has no key any more")


def test_an_admin_s_rights_end_when_its_key_expires(client: Client, ann: Client, receiver: Receiver) -> None:
    made = client.http.post("/api/v1/keys", json={"role": "admin", "user_id": "bea", "expires_in_seconds": 5})
    bea = client.with_key(made.raise_for_status().json()["key"])
    as_user = client.with_key(new_key(client, "user", "bea"))
    hook = Hook(bea, receiver, "/expires", "task.completed", filter={"tag": "for-bea"})
    greet(ann, tags=("for-bea",))
    hook.got(1)
    hook.until("delivered")
    (delivery,) = hook.deliveries()
    wait_until("the key has expired", lambda: bea.http.get("/api/v1/session").status_code == 401)
    greet(ann, tags=("for-bea",))
    hook.client = client
    assert hook.states() == ["delivered"], "nothing more is written for it"
    again = client.http.post(f"/api/v1/deliveries/{delivery['delivery_id']}/redeliver")
    if again.status_code == 202:
        hook.until("failed")
    else:
        assert again.json()["code"] == "webhook-disabled", "the janitor was quicker"
    assert len(receiver.got("/expires")) == 1, "nothing more is sent to it"
    hook.client = as_user
    assert hook.deliveries() == []
    assert as_user.http.get(f"/api/v1/deliveries/{delivery['delivery_id']}").status_code == 404
    assert as_user.http.post(f"/api/v1/deliveries/{delivery['delivery_id']}/redeliver").status_code == 404
    assert as_user.http.patch(hook.at, json={"url": receiver.at("/elsewhere")}).status_code == 403
    assert as_user.http.post(f"{hook.at}/rotate").status_code == 403
    assert as_user.http.patch(hook.at, json={"scope": "own"}).json()["scope"] == "own"
    as_user.http.delete(hook.at)


def test_a_user_does_not_enable_what_hears_of_everybody_s(
    windlass: Windlass, client: Client, ann: Client, receiver: Receiver
) -> None:
    hook = Hook(client, receiver, "/once-an-admins", "task.completed")
    hook.post("disable")
    url = windlass.environment["WINDLASS_DATABASE_URL"]
    execute(url, "UPDATE webhooks SET user_id = 'ann' WHERE url LIKE '%once-an-admins'")
    refused = ann.http.post(f"{hook.at}/enable")
    assert (refused.status_code, hook.read()["state"]) == (403, "disabled")
    ann.http.delete(hook.at)


@pytest.mark.parametrize("body", ["[]", "0", "false", '""', "null"])
def test_enabling_with_a_body_that_is_no_object_is_refused(ann: Client, receiver: Receiver, body: str) -> None:
    hook = Hook(ann, receiver, "/no-object", "task.completed")
    hook.post("disable")
    refused = ann.http.post(f"{hook.at}/enable", content=body)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid-webhook")
    assert hook.read()["state"] == "disabled"
    ann.http.delete(hook.at)


def test_an_endpoint_that_is_changed_while_deliveries_wait(ann: Client, receiver: Receiver) -> None:
    receiver.answer("/old", 500)
    hook = Hook(ann, receiver, "/old", "task.completed")
    task_id = greet(ann)["task_id"]
    wait_until("failing", lambda: hook.read()["state"] == "failing")
    receiver.secrets["/new"] = hook.document["secret"]
    changed = ann.http.patch(hook.at, json={"url": receiver.at("/new")})
    assert changed.status_code == 200, changed.text
    (delivery,) = hook.deliveries()
    ann.http.post(f"/api/v1/deliveries/{delivery['delivery_id']}/redeliver")
    hook.until("delivered")
    assert [each.body["data"]["task_id"] for each in receiver.got("/new")] == [task_id]
    ann.http.patch(hook.at, json={"events": ["task.dead"]})
    ann.http.post(f"/api/v1/deliveries/{delivery['delivery_id']}/redeliver")
    hook.until("failed")
    assert "does not subscribe" in hook.deliveries()[0]["reason"]
    ann.http.delete(hook.at)


def test_one_that_is_edited_disabled_or_deleted_while_its_delivery_is_under_way(
    ann: Client, receiver: Receiver
) -> None:
    paths = ("/edited", "/disabled", "/deleted")
    doors = {path: threading.Event() for path in paths}
    receiver.doors.update(doors)
    edited, disabled, deleted = hooks = [Hook(ann, receiver, path, "task.completed") for path in paths]
    greet(ann)
    (delivery,) = deleted.deliveries()
    for hook in hooks:
        hook.got(1)  # and is not answered yet
    receiver.secrets["/edited-to"] = edited.document["secret"]
    assert ann.http.patch(edited.at, json={"url": receiver.at("/edited-to")}).status_code == 200
    disabled.post("disable")
    assert ann.http.delete(deleted.at).status_code == 204
    for door in doors.values():
        door.set()
    edited.until("delivered")
    disabled.until("delivered")
    wait_until("it came to its own end", lambda: whole(ann, delivery["delivery_id"])["state"] == "delivered")
    assert disabled.read()["state"] == "disabled", "what was on its way does not undo what a person did"
    task_id = greet(ann)["task_id"]
    edited.until("delivered", "delivered")
    assert [each.body["data"]["task_id"] for each in receiver.got("/edited-to")] == [task_id]
    disabled.until("delivered", "held")
    assert [len(receiver.got(path)) for path in paths] == [1, 1, 1]
    for hook in (edited, disabled):
        ann.http.delete(hook.at)


def test_a_task_that_lives_twice_is_told_twice_under_two_ids(ann: Client, receiver: Receiver) -> None:
    hook = Hook(ann, receiver, "/lives", "task.*")
    task_id = greet(ann, name="nobody")["task_id"]
    ann.http.post(f"/api/v1/tasks/{task_id}/retry").raise_for_status()
    first, second = sorted(hook.got(2), key=lambda each: str(each.body["timestamp"]))
    assert [each.body["data"]["life"] for each in (first, second)] == [1, 2]
    assert {each.body["type"] for each in (first, second)} == {"task.dead"}
    assert first.id != second.id
    hook.until("delivered", "delivered")
    ann.http.delete(hook.at)


def test_after_five_days_it_is_disabled_said_elsewhere_and_counted(
    windlass: Windlass, ann: Client, client: Client, receiver: Receiver
) -> None:
    receiver.answer("/dead", 500)
    hook = Hook(ann, receiver, "/dead", "task.completed")
    other = Hook(ann, receiver, "/told-of-it", "webhook.disabled")
    greet(ann)
    wait_until("failing", lambda: hook.read()["state"] == "failing")
    url = windlass.environment["WINDLASS_DATABASE_URL"]
    execute(url, "UPDATE webhooks SET failing_since = failing_since - interval '5 days' WHERE state = 'failing'")
    (delivery,) = hook.deliveries()
    ann.http.post(f"/api/v1/deliveries/{delivery['delivery_id']}/redeliver").raise_for_status()
    wait_until("disabled", lambda: hook.read()["state"] == "disabled")
    hook.until("held")
    (told,) = other.got(1)
    assert (told.body["type"], told.body["data"]["webhook_id"]) == ("webhook.disabled", hook.document["webhook_id"])
    wait_until("counted", lambda: "windlass_given_up_webhooks 1.0" in client.http.get("/metrics").text)
    receiver.answer("/dead", 200)
    execute(url, "UPDATE webhooks SET probe_at = now() WHERE state = 'disabled' AND probe_at IS NOT NULL")
    execute(url, "SELECT pg_notify('windlass_endpoints', '')")
    hook.until("delivered")
    assert hook.read()["state"] == "enabled", "it healed by itself"
    for each in (hook, other):
        ann.http.delete(each.at)


def test_private_addresses_are_not_spoken_to(windlass: Windlass, ann: Client, receiver: Receiver) -> None:
    """Nor those of webhooks from before their urls were checked."""
    port = receiver.url.rpartition(":")[2]
    database = windlass.environment["WINDLASS_DATABASE_URL"]
    for url in (f"http://127.0.0.2:{port}/", "http://169.254.169.254/latest", f"http://127.1.2.3:{port}/"):
        made = ann.http.post("/api/v1/webhooks", json={"url": "https://example.org/", "events": []}).json()
        execute(database, f"UPDATE webhooks SET url = '{url}' WHERE webhook_id = '{made['webhook_id']}'")
        tested = ann.http.post(f"/api/v1/webhooks/{made['webhook_id']}/test").json()
        task = ann.finished(tested["task_id"])
        assert (task["status"], task["error"]["type"]) == ("dead", "DeliveryFailed")
        (answer,) = whole(ann, tested["delivery_id"])["tries"]
        assert "private address" in answer["error"]
        ann.http.delete(f"/api/v1/webhooks/{made['webhook_id']}")


@pytest.mark.parametrize("url", ["http://127.0.0.2:9/", "https://[::1]/", "http://2130706434/", "https://0x7f.2/"])
def test_a_private_address_is_refused_when_it_is_named(ann: Client, url: str) -> None:
    made = ann.http.post("/api/v1/webhooks", json={"url": "https://example.org/", "events": []}).json()
    for refused, pointer in (
        (ann.http.post("/api/v1/webhooks", json={"url": url, "events": []}), "/url"),
        (ann.http.patch(f"/api/v1/webhooks/{made['webhook_id']}", json={"url": url}), "/url"),
        (ann.http.post("/api/v1/tasks", json={"actor": "probe", "webhook_url": url}), "/webhook_url"),
        (ann.http.post("/api/v1/tasks/batch", json={"tasks": [{"actor": "probe", "webhook_url": url}]}),
         "/tasks/0/webhook_url"),
    ):  # fmt: skip
        assert refused.status_code == 422, refused.text
        (error,) = refused.json()["errors"]
        assert error["pointer"] == pointer
        assert "is at a private address" in error["detail"]
    ann.http.delete(f"/api/v1/webhooks/{made['webhook_id']}")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("example.org/hook", "begins with https:// or http://"),
        ("https://", "a URL names a host"),
        ("https://example.org/a b", "has the character ' ', which must be percent-encoded"),
    ],
)
def test_a_bad_url_gets_one_sentence(ann: Client, url: str, reason: str) -> None:
    answer = ann.http.post("/api/v1/webhooks", json={"url": url, "events": []}).json()
    (error,) = answer["errors"]
    assert error["pointer"] == "/url"
    assert reason in error["detail"]
    assert "pattern" not in error["detail"]
    assert answer["detail"] == f"invalid field /url: {error['detail']}"


def test_a_reason_is_audited_for_an_admins_own_webhook_too(client: Client) -> None:
    made = client.http.post("/api/v1/webhooks", json={"url": "https://example.org/own", "events": []}).json()
    path = f"/api/v1/webhooks/{made['webhook_id']}"

    def audited() -> list[tuple[str, str | None]]:
        entries = client.http.get("/api/v1/audit").json()["items"]
        return [
            (each["action"], each["details"].get("reason")) for each in entries if each["target"] == made["webhook_id"]
        ]

    client.http.patch(path, json={"description": "the shop"}).raise_for_status()
    assert audited() == [], "without a reason, an owner's change is no operator's action"
    client.http.patch(path, json={"events": ["task.dead"], "reason": "too many"}).raise_for_status()
    client.http.post(f"{path}/disable", json={"reason": "moving"}).raise_for_status()
    assert audited() == [("webhook.disable", "moving"), ("webhook.change", "too many")]
    client.http.delete(path).raise_for_status()


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        ({"url": "https://ann:pw@example.org/", "events": []}, 422, "/url"),
        ({"url": "ftp://example.org/", "events": []}, 422, "/url"),
        ({"url": "https://example.org/", "events": ["task.begun"]}, 422, "/events/0"),
        ({"url": "https://example.org/", "events": ["provider.*"]}, 403, "/events/0"),
        ({"url": "https://example.org/", "events": [], "scope": "all"}, 403, "/scope"),
        ({"url": "https://example.org/", "events": [], "filter": {"colour": "blue"}}, 422, "/filter/colour"),
    ],
)
def test_what_a_user_s_webhook_cannot_be(ann: Client, body: dict[str, Any], status: int, pointer: str) -> None:
    refused = ann.http.post("/api/v1/webhooks", json=body)
    assert refused.status_code == status, refused.text
    assert [each["pointer"] for each in refused.json()["errors"]] == [pointer]


@pytest.mark.parametrize("failpoint", OF_WEBHOOKS)
def test_a_worker_that_is_killed_in_mid_delivery_costs_no_word(
    windlass: Windlass, ann: Client, receiver: Receiver, failpoint: str
) -> None:
    hook = Hook(ann, receiver, f"/{failpoint}", "task.completed")
    windlass.failpoints.kill(failpoint)
    greet(ann)
    windlass.failpoints.wait_until_spent(failpoint)
    hook.until("delivered")
    received = hook.got(1)
    assert len({each.id for each in received}) == 1, "however often it came, under one id"
    ann.http.delete(hook.at)


def test_tries_and_endpoints_are_counted(ann: Client, client: Client, receiver: Receiver) -> None:
    hook = Hook(ann, receiver, "/counted", "task.completed")
    greet(ann)
    hook.until("delivered")
    text = client.http.get("/metrics").text
    assert 'windlass_webhooks{state="enabled"}' in text
    assert 'windlass_webhook_waiting_deliveries{state="failing"}' in text
    ann.http.delete(hook.at)


# By the clients


def test_the_client_makes_reads_changes_and_replays(windlass: Windlass, anns_key: str, receiver: Receiver) -> None:
    with library.Client(windlass.url, anns_key) as client:
        webhooks, url = client.webhooks, receiver.at("/client")
        made = webhooks.create(url, events=["task.completed"], only={"tag": "blue"}, description="ours")
        receiver.secrets["/client"] = made.secret
        with pytest.raises(library.UrlTaken):
            webhooks.create(url, events=[])
        assert (made.state, made.events, made.filter) == ("enabled", ("task.completed",), {"tag": "blue"})
        told = client.run("greet", {"name": "ann"}, tags=["blue"])
        client.run("greet", {"name": "ann"})
        arrived = wait_until("it arrives", lambda: receiver.got("/client"))
        assert [each.body["data"]["task_id"] for each in arrived] == [told.task_id]
        (delivery,) = wait_until("it is known", lambda: list(webhooks.deliveries(made.webhook_id, state="delivered")))
        whole = webhooks.delivery(delivery.delivery_id)
        assert (whole.body["type"], [each.status_code for each in whole.tries]) == ("task.completed", [200])
        again = webhooks.redeliver(delivery.delivery_id, reason="once more")
        assert (again.delivery_id, again.state) == (delivery.delivery_id, "waiting")
        wait_until("once more", lambda: len(receiver.got("/client")) == 2)
        changed = webhooks.change(made.webhook_id, events=["task.*"], description=None)
        assert (changed.events, changed.description) == (("task.*",), None)
        assert webhooks.disable(made.webhook_id).state == "disabled"
        assert webhooks.enable(made.webhook_id, replay="none").state == "enabled"
        assert webhooks.rotate(made.webhook_id).secret != made.secret
        assert made.webhook_id in [each.webhook_id for each in webhooks.list(page_size=1)]
        webhooks.delete(made.webhook_id)
        with pytest.raises(library.WebhookNotFound):
            webhooks.get(made.webhook_id)
        with pytest.raises(library.WebhookDeleted):
            webhooks.redeliver(delivery.delivery_id)
        with pytest.raises(library.DeliveryNotFound):
            webhooks.delivery(NOBODY)
        with pytest.raises(library.InvalidWebhook, match="/events/0"):
            webhooks.create(url, events=["task.begun"])


def test_the_asynchronous_client_does_the_same(windlass: Windlass, anns_key: str, receiver: Receiver) -> None:
    async def use() -> None:
        async with library.AsyncClient(windlass.url, anns_key) as client:
            made = await client.webhooks.create(receiver.at("/async"), events=["task.dead"])
            receiver.secrets["/async"] = made.secret
            sent = await client.webhooks.test(made.webhook_id)
            await client.wait(sent.task_id, timeout=60)
            assert [each.type async for each in client.webhooks.deliveries(made.webhook_id)] == ["webhook.test"]
            assert (await client.webhooks.delivery(sent.delivery_id)).state == "delivered"
            assert (await client.webhooks.get(made.webhook_id)).last_success_at is not None
            assert made.webhook_id in [each.webhook_id async for each in client.webhooks.list()]
            await client.webhooks.delete(made.webhook_id)

    asyncio.run(use())
    assert [each.fault for each in receiver.got("/async")] == [None]


# By the command line


@pytest.fixture
def environment(windlass: Windlass, anns_key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_URL", windlass.url)
    monkeypatch.setenv("WINDLASS_API_KEY", anns_key)


@pytest.mark.usefixtures("environment")
def test_the_command_line_makes_tests_and_redelivers(run: Run, ann: Client, receiver: Receiver) -> None:
    def said(*words: str, code: int = 0) -> dict[str, str]:
        result = run("webhooks", *words)
        assert result.code == code, result.err
        return dict(row[:2] for row in result.rows)

    url = receiver.at("/typed")
    made = run("webhooks", "create", url, "--event", "task.dead", "--event", "task.completed", "--tag", "typed")
    facts = dict(made.rows)
    assert "cannot be shown again" in made.err
    assert (facts["events"], facts["only"]) == ("task.dead, task.completed", '{"tag": "typed"}')
    webhook, receiver.secrets["/typed"] = facts["webhook"], facts["secret"]
    assert "secret" not in said("show", webhook)
    taken = run("webhooks", "create", url, "--event", "task.dead")
    assert (taken.code, "[url-taken]" in taken.err) == (1, True)
    tested = said("test", webhook)["delivery"]
    wait_until("it is tested", lambda: said("delivery", tested)["state"] == "delivered")
    assert re.search(r"  200 in \d+ ms: thanks$", said("delivery", tested)["try"])
    said("disable", webhook, "--reason", "moving")
    greet(ann, ("typed",))
    (_, held) = run("webhooks", "deliveries", webhook, "--state", "held").rows
    assert (held[1], held[2], run("webhooks").rows[1][:2]) == ("held", "task.completed", [webhook, "disabled"])
    assert said("enable", webhook)["state"] == "enabled"
    wait_until("it is sent", lambda: said("delivery", held[0])["state"] == "delivered")
    again = run("webhooks", "redeliver", held[0], str(NOBODY))
    assert (again.code, again.out, "[delivery-not-found]" in again.err) == (3, f"{held[0]}\twaiting\n", True)
    changed = said("change", webhook, "--event", "task.*", "--no-filter", "--description", "all of it")
    assert (changed["events"], changed.get("only"), changed["description"]) == ("task.*", None, "all of it")
    assert said("change", webhook, "--tag", "other", "--description", "")["only"] == '{"tag": "other"}'
    assert "description" not in said("show", webhook)
    assert "name a change: --endpoint, --event" in run("webhooks", "change", webhook).err
    assert said("rotate", webhook)["secret"] != facts["secret"]
    assert run("webhooks", "delete", webhook).code == 0
    assert run("webhooks", "show", webhook).code == 3
    sent = run("submit", "probe", "--webhook-url", receiver.at("/typed-once"))
    assert re.search(r"told once: whsec_\S+$", sent.err.strip())


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("show", "shop"), "argument WEBHOOK: 'shop' is not the id of a webhook; one looks like"),
        (("create", "https://example.org/"), "the following arguments are required: --event"),
        (("redelivr", str(NOBODY)), "did you mean `redeliver`?"),
    ],
)
def test_what_is_typed_wrong_is_one_sentence(run: Run, words: tuple[str, ...], sentence: str) -> None:
    refused = run("webhooks", *words)
    assert (refused.code, refused.out, len(refused.err.splitlines())) == (2, "", 1)
    assert sentence in refused.err


# As the page says


@pytest.mark.usefixtures("environment")
def test_the_page_does_what_it_says(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port = str(free_port())

    def here(text: str) -> str:
        return re.sub(r"\b9000\b", port, text).replace("submit summarize content=", "submit greet name=")

    creating, starting, finding, *others = lines_typed("webhooks.md")
    creating, _, kept_in = here(creating).partition(" > ")
    made = run(*shlex.split(creating)[1:])
    (tmp_path / kept_in).write_text(made.out)
    (tmp_path / "receiver.py").write_text(here(files_of("webhooks.md")["receiver.py"]))
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    webhook = subprocess.check_output(["sh", "-c", f"{finding}; echo $WEBHOOK"], cwd=tmp_path, text=True).strip()
    with subprocess.Popen(
        ["sh", "-c", f"export {starting.replace(' python', '; exec python')}"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as receiver:
        try:
            wait_until("it listens", lambda: is_listening(int(port)))
            for line in others:
                done = run(*shlex.split(here(line).replace("$WEBHOOK", webhook))[1:])
                assert done.code == 0, (line, done)
            assert receiver.stdout is not None
            heard = {receiver.stdout.readline().strip() for _ in range(3)}
        finally:
            receiver.kill()
    (probed,) = heard - {"webhook.test None", "task.completed hello A long story."}
    assert probed.startswith("task.completed {'echo': 'hello'")
    (program,) = re.findall(r"(?<!\*\*\n\n)```python\n(.*?)```", here(page("webhooks.md")), re.DOTALL)
    exec(program, {})
    assert capsys.readouterr().out.splitlines()[-1] == "enabled task.* workflow.*"
    run("webhooks", "delete", webhook)


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0

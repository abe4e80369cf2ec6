"""Keys over HTTP: made, shown once, listed, revoked everywhere at once; guesses are slowed down, valid keys never."""

import asyncio
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.support.an_api import an_api, new_key
from tests.support.installation import KEY, Client, Windlass
from tests.support.servers.databases import ask, execute
from tests.support.servers.private_servers import Servers
from tests.support.up import WINDLASS
from tests.support.waiting import wait_until
from windlass.services.api.access.keyring import KEPT_SECONDS
from windlass.services.api.access.throttle import FAILURES
from windlass.services.laptop.api_health import ApiHealth
from windlass.services.laptop.supervision.unit import StartFailure

A_WRONG_KEY = "wl_wrong123_" + "x" * 40


@pytest.fixture(scope="module")
def windlass(servers: Servers, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Windlass]:
    directory = tmp_path_factory.mktemp("keys")
    with an_api(servers, migrated_template, directory, WINDLASS_TRUSTED_PROXIES="127.0.0.1, 10.0.0.0/8") as windlass:
        yield windlass


@pytest.fixture(scope="module")
def admin(windlass: Windlass) -> Client:
    return windlass.client


def make(admin: Client, **fields: Any) -> dict[str, Any]:
    made = admin.http.post("/api/v1/keys", json=fields)
    assert made.status_code == 201, made.text
    document: dict[str, Any] = made.json()
    return document


def test_a_key_is_shown_once_and_listed_without_its_secret(admin: Client) -> None:
    made = make(admin, role="user", user_id="ann", name="laptop", expires_in_seconds=3600)
    assert set(made) == {"key_id", "key", "role", "user_id", "name", "created_at", "expires_at"}
    assert made["key"].startswith(f"wl_{made['key_id']}_")
    lifetime = datetime.fromisoformat(made["expires_at"]) - datetime.fromisoformat(made["created_at"])
    assert timedelta(seconds=3599) < lifetime < timedelta(seconds=3601)
    listed = admin.http.get("/api/v1/keys")
    (entry,) = [each for each in listed.json()["items"] if each["key_id"] == made["key_id"]]
    without_the_key = {name: value for name, value in made.items() if name != "key"}
    assert entry == {**without_the_key, "revoked_at": None, "created_by": "admin"}
    assert made["key"].rpartition("_")[2] not in listed.text
    task = admin.with_key(made["key"]).submit(delay_seconds=3600)
    assert task["user_id"] == "ann"


def test_the_list_of_keys_has_pages(admin: Client) -> None:
    made = [make(admin, role="viewer", user_id="eve")["key_id"] for _ in range(3)]
    first = admin.http.get("/api/v1/keys", params={"limit": 2}).json()
    second = admin.http.get("/api/v1/keys", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [each["key_id"] for each in first["items"] + second["items"]][:3] == made[::-1]


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, ["/role", "/user_id"]),
        ({"role": "root", "user_id": "ann"}, ["/role"]),
        ({"role": "user", "user_id": ""}, ["/user_id"]),
        ({"role": "user", "user_id": "a\0b"}, ["/user_id"]),
        ({"role": "user", "user_id": "ann", "expires_in_seconds": 0}, ["/expires_in_seconds"]),
        ({"role": "user", "user_id": "ann", "expires_in_seconds": 1e300}, ["/expires_in_seconds"]),
        ({"role": "user", "user_id": "ann", "secret": "mine"}, ["/secret"]),
        ([], [""]),
    ],
)
def test_a_key_that_cannot_be_made_names_the_field(admin: Client, body: Any, pointers: list[str]) -> None:
    refused = admin.http.post("/api/v1/keys", json=body)
    assert refused.status_code == 422, refused.text
    assert [error["pointer"] for error in refused.json()["errors"]] == pointers


def test_an_expired_key_opens_nothing_also_where_it_was_just_used(admin: Client) -> None:
    ann = admin.with_key(make(admin, role="user", user_id="ann", expires_in_seconds=8)["key"])
    assert ann.http.get("/api/v1/tasks").status_code == 200
    wait_until("it has expired", lambda: ann.http.get("/api/v1/tasks").status_code == 401)


def test_a_revocation_holds_in_every_api_process_at_once(windlass: Windlass, admin: Client) -> None:
    made = make(admin, role="user", user_id="ann")
    other_api = windlass.start_api()
    here, there = admin.with_key(made["key"]), other_api.with_key(made["key"])
    cookies = dict(here.http.post("/api/v1/session", json={"key": made["key"]}).cookies)
    here.http.cookies.clear()

    def by_session() -> int:
        return httpx.get(
            f"{there.http.base_url}/api/v1/tasks", cookies=cookies, timeout=60, trust_env=False
        ).status_code

    looked_up_at = time.monotonic()
    assert [each.http.get("/api/v1/tasks").status_code for each in (here, there)] == [200, 200]
    assert by_session() == 200
    revoked = admin.http.delete(f"/api/v1/keys/{made['key_id']}")
    assert revoked.status_code == 200
    assert revoked.json()["revoked_at"] is not None
    assert here.http.get("/api/v1/tasks").status_code == 401
    # By word of Postgres, long before what is kept there would be looked up again.
    wait_until("revoked there too", lambda: there.http.get("/api/v1/tasks").status_code == 401)
    assert time.monotonic() - looked_up_at < KEPT_SECONDS
    assert by_session() == 401, "sessions end with their key"
    again = admin.http.delete(f"/api/v1/keys/{made['key_id']}")
    assert (again.status_code, again.json()) == (200, revoked.json())


def test_a_first_key_that_was_revoked_stays_so_when_an_api_starts_with_it_and_it_says_so(
    windlass: Windlass, admin: Client
) -> None:
    made = make(admin, role="admin", user_id="root")
    admin.http.delete(f"/api/v1/keys/{made['key_id']}").raise_for_status()
    started = windlass.start_api(WINDLASS_API_KEY=made["key"]).with_key(made["key"])
    assert started.http.get("/api/v1/keys").status_code == 401
    words = "the key in WINDLASS_API_KEY opens nothing: it was revoked at"
    wait_until("it says so", lambda: words in windlass.log())
    assert made["key"] not in windlass.log()

    async def wait_as_up_does() -> None:
        async with ApiHealth(str(started.http.base_url), made["key"]) as health:
            await health.until_healthy(print)

    with pytest.raises(StartFailure, match="the first key was revoked or has expired"):
        asyncio.run(wait_as_up_does())


def test_a_request_with_a_known_key_costs_no_question_about_it(windlass: Windlass, admin: Client) -> None:
    url = windlass.environment["WINDLASS_DATABASE_URL"]
    ann = admin.with_key(new_key(admin, "user", "ann"))
    assert ann.http.get("/api/v1/tasks").status_code == 200
    execute(url, "ALTER TABLE api_keys RENAME TO hidden_keys")
    try:
        assert [ann.http.get("/api/v1/tasks").status_code for _ in range(5)] == [200] * 5
    finally:
        execute(url, "ALTER TABLE hidden_keys RENAME TO api_keys")


def test_an_unknown_key_cannot_be_revoked_nor_the_one_in_use(admin: Client) -> None:
    for unknown in ("nobody", "a%00b", "x" * 500, "%C3%BC"):
        missing = admin.http.delete(f"/api/v1/keys/{unknown}")
        assert (missing.status_code, missing.json()["code"]) == (404, "key-not-found")
    mine = admin.http.delete(f"/api/v1/keys/{KEY.split('_')[1]}")
    assert (mine.status_code, mine.json()["code"]) == (409, "key-in-use")
    assert admin.http.get("/api/v1/keys").status_code == 200


def attempt(client: Client, key: str | None, forwarded_for: str) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"} if key else {"Authorization": ""}
    return client.http.get("/api/v1/tasks", headers={**headers, "X-Forwarded-For": forwarded_for})


def test_guesses_from_one_address_are_slowed_down_and_valid_keys_never(admin: Client) -> None:
    guessing = "198.51.100.7"
    for _ in range(FAILURES):
        assert attempt(admin, A_WRONG_KEY, guessing).status_code == 401
    slowed = attempt(admin, A_WRONG_KEY, guessing)
    assert (slowed.status_code, slowed.json()["code"]) == (429, "too-many-attempts")
    assert 0 < int(slowed.headers["Retry-After"]) <= 60
    assert attempt(admin, KEY, guessing).status_code == 200
    assert attempt(admin, None, guessing).status_code == 401, "who sends no key does not guess"
    # The right-most address that is no proxy of ours counts, whatever the client wrote before it.
    assert attempt(admin, A_WRONG_KEY, f"192.0.2.1, {guessing}, 10.0.0.9").status_code == 429
    assert attempt(admin, A_WRONG_KEY, f"{guessing}, 192.0.2.1").status_code == 401


def test_guesses_at_the_health_page_are_guesses(admin: Client) -> None:
    def ask_about_health(key: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {key}", "X-Forwarded-For": "198.51.100.8"}
        return admin.http.get("/health", headers=headers)

    told = [ask_about_health(A_WRONG_KEY) for _ in range(FAILURES)]
    assert {(each.status_code, "components" in each.json()) for each in told} == {(200, False)}
    slowed = ask_about_health(A_WRONG_KEY)
    assert (slowed.status_code, slowed.json()["code"]) == (429, "too-many-attempts")
    assert attempt(admin, A_WRONG_KEY, "198.51.100.8").status_code == 429, "one count for all doors"
    assert "components" in ask_about_health(KEY).json()


def test_a_header_from_somebody_who_is_no_trusted_proxy_is_not_believed(windlass: Windlass) -> None:
    untrusting = windlass.start_api(WINDLASS_TRUSTED_PROXIES="")
    answers = [attempt(untrusting, A_WRONG_KEY, f"198.51.100.{number}") for number in range(FAILURES + 1)]
    assert [answer.status_code for answer in answers] == [401] * FAILURES + [429]


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"Bearer",
        b"Bearer ",
        b"Basic dXNlcjpwYXNzd29yZA==",
        "Bearer wl_tests1_üüüüüüüüüüüüüüüüüüüüüüüüüü".encode(),
        b"Bearer \xff\xfe\xfd",
        b"Bearer wl_tests1_" + b"a" * 100_000,
        b"Bearer " + KEY.encode() + b"\x00",
        b"Bearer " + KEY.encode() + b" " + KEY.encode(),
        b"\tBearer",
    ],
    ids=lambda header: repr(header[:30]),
)
def test_a_malformed_header_is_the_client_s_fault(windlass: Windlass, header: bytes) -> None:
    with socket.create_connection(("127.0.0.1", windlass.port), timeout=60) as connection:
        with suppress(OSError):  # it need not hear one out whom it has answered already
            connection.sendall(b"GET /api/v1/tasks HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: ")
            connection.sendall(header + b"\r\n\r\n")
            connection.shutdown(socket.SHUT_WR)
        status = connection.makefile("rb").readline().split()[1]
    assert status in {b"400", b"401", b"431"}


def test_what_operators_do_is_in_the_audit_log(admin: Client) -> None:
    def entries(**filters: Any) -> list[dict[str, Any]]:
        answer = admin.http.get("/api/v1/audit", params=filters)
        assert answer.status_code == 200
        items: list[dict[str, Any]] = answer.json()["items"]
        return items

    ann = admin.with_key(new_key(admin, "user", "ann"))
    made = make(admin, role="viewer", user_id="eve", name="wall")
    admin.http.delete(f"/api/v1/keys/{made['key_id']}")
    hers, mine = (client.submit(delay_seconds=3600)["task_id"] for client in (ann, admin))
    for task_id in (hers, mine):
        admin.cancel(task_id)
        admin.retry(task_id)
    ann.cancel(hers)
    admin.http.post("/api/v1/tasks/requeue-orphaned", json={"max_age_seconds": 5})
    assert [(each["action"], each["target"]) for each in entries(limit=5)] == [
        ("tasks.requeue-orphaned", None),
        ("task.retry", hers),
        ("task.cancel", hers),
        ("key.revoke", made["key_id"]),
        ("key.create", made["key_id"]),
    ]
    (created,) = entries(action="key.create", limit=1)
    assert set(created) == {"audit_id", "at", "key_id", "user_id", "action", "target", "details"}
    assert (created["key_id"], created["user_id"]) == (KEY.split("_")[1], "admin")
    assert created["details"] == {"role": "viewer", "user_id": "eve", "name": "wall", "expires_in_seconds": None}
    assert made["key"] not in json.dumps(entries())
    first = admin.http.get("/api/v1/audit", params={"limit": 2}).json()
    second = admin.http.get("/api/v1/audit", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [each["audit_id"] for each in first["items"] + second["items"]] == [
        each["audit_id"] for each in entries(limit=4)
    ]
    assert entries(user_id="nobody") == []


def test_what_is_done_in_somebody_else_s_name_is_in_the_audit_log(admin: Client) -> None:
    def newest(number: int) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = admin.http.get("/api/v1/audit", params={"limit": number}).json()["items"]
        return items

    viewer = admin.with_key(new_key(admin, "viewer", "eve"))
    mine = admin.submit(delay_seconds=3600)["task_id"]
    hers = admin.submit(delay_seconds=3600, user_id="ann")["task_id"]
    later = {"actor": "probe", "delay_seconds": 3600}
    batch = [later, *({**later, "user_id": user} for user in ("ann", "ben", "ann", "admin"))]
    assert admin.http.post("/api/v1/tasks/batch", json={"tasks": batch}).status_code == 201
    for reader in (admin, viewer):
        for task_id in (mine, hers):
            assert reader.http.post(f"/api/v1/tasks/{task_id}/stream-token").status_code == 201
    told = [(each["user_id"], each["action"], each["target"], each["details"]) for each in newest(6)]
    of_hers = {"owner": "ann", "status": "queued"}
    assert told[:5] == [
        ("eve", "task.stream-token", hers, of_hers),
        ("eve", "task.stream-token", mine, {**of_hers, "owner": "admin"}),
        ("admin", "task.stream-token", hers, of_hers),
        ("admin", "task.submit", None, {"owners": {"ann": 2, "ben": 1}}),
        ("admin", "task.submit", hers, {"owners": {"ann": 1}}),
    ]
    assert told[5][1] == "key.create", "what an admin does in its own name is no operator's action"


def test_a_reason_is_kept_wherever_an_operator_gives_one(admin: Client) -> None:
    ann = admin.with_key(new_key(admin, "user", "ann"))
    hers = ann.submit(delay_seconds=3600)["task_id"]
    because = {"reason": "she asked; her password=hunter22"}
    made = make(admin, role="viewer", user_id="eve", **because)
    answers = [
        admin.http.delete(f"/api/v1/keys/{made['key_id']}", params=because),
        admin.http.post(f"/api/v1/tasks/{hers}/cancel", json=because),
        admin.http.post(f"/api/v1/tasks/{hers}/retry", json=because),
        admin.http.delete(f"/api/v1/tasks/{hers}", params=because),
        admin.http.post("/api/v1/tasks/requeue-orphaned", json=because),
        admin.http.patch("/api/v1/providers/probe", json={"paused": False, **because}),
        admin.http.patch("/api/v1/providers", json={"paused": False, **because}),
        admin.http.post("/api/v1/tasks/bulk", json={"action": "cancel", "filter": {"tag": "none"}, **because}),
        admin.http.post("/api/v1/queues/dlq/revive", json={"filter": {"tag": "none"}, **because}),
    ]
    assert [each.status_code for each in answers] == [200] * 7 + [202] * 2, [each.text for each in answers]
    entries = admin.http.get("/api/v1/audit", params={"limit": len(answers) + 1}).json()["items"]
    assert {each["details"].get("reason") for each in entries} == {"she asked; her password=[scrubbed]"}
    assert len({each["action"] for each in entries}) == 9
    for wrong in ({"reason": ""}, {"reason": "x" * 501}, {"reason": 7}, {"raeson": "x"}):
        refused = admin.http.post(f"/api/v1/tasks/{hers}/cancel", json=wrong)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid-request")
    assert admin.http.post(
        f"/api/v1/tasks/{hers}/cancel", content=b"", headers={"Content-Type": "text/plain"}
    ).is_success


def bootstrap(database_url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [WINDLASS, "keys", "create", "--bootstrap", *arguments],
        env={**os.environ, "WINDLASS_DATABASE_URL": database_url},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


def test_the_first_key_is_made_where_the_database_is(
    windlass: Windlass, database_url: str, empty_database_url: str
) -> None:
    first = bootstrap(database_url, "--user", "root")
    assert first.returncode == 0, first.stderr
    key = first.stdout.strip()
    again = bootstrap(database_url)
    assert (again.returncode, again.stdout) == (1, "")
    assert "there is an admin's key already" in again.stderr
    (row,) = ask(database_url, "SELECT * FROM api_keys")
    assert (row["role"], row["user_id"], row["key_id"]) == ("admin", "root", key.split("_")[1])
    (entry,) = ask(database_url, "SELECT * FROM audit_log")
    assert (entry["user_id"], entry["action"], entry["target"]) == ("bootstrap", "key.create", row["key_id"])
    opened = windlass.start_api(WINDLASS_DATABASE_URL=database_url, WINDLASS_API_KEY=KEY).with_key(key)
    assert opened.http.get("/api/v1/keys").status_code == 200
    refused = bootstrap(empty_database_url)
    assert (refused.returncode, "windlass migrate" in refused.stderr) == (1, True)
    unreachable = bootstrap("postgresql://windlass:a-secret-word@127.0.0.1:1/windlass")
    assert (unreachable.returncode, "cannot be reached" in unreachable.stderr) == (1, True)
    assert "a-secret-word" not in unreachable.stderr

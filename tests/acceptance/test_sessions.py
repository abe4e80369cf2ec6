"""Signing in: a cookie that stands for a key, ends with it, and changes nothing at a foreign page's wish."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.cookies import SimpleCookie
from typing import Any

import httpx
import pytest

from tests.support.an_api import an_api, new_key
from tests.support.installation import KEY, Client, Windlass
from tests.support.servers.databases import ask, execute
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until
from windlass.services.api.access.throttle import FAILURES
from windlass.shared.store.access.sessions import LIFETIME_SECONDS

OUR_PAGE = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}
A_WRONG_KEY = "wl_wrong123_" + "x" * 40
LATER = {"actor": "probe", "delay_seconds": 3600}


@pytest.fixture(scope="module")
def windlass(servers: Servers, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Windlass]:
    directory = tmp_path_factory.mktemp("sessions")
    settings = {"WINDLASS_TRUSTED_PROXIES": "127.0.0.1", "WINDLASS_STREAM_PING_SECONDS": "0.3"}
    with an_api(servers, migrated_template, directory, **settings) as windlass:
        yield windlass


@pytest.fixture(scope="module")
def admin(windlass: Windlass) -> Client:
    return windlass.client


@pytest.fixture
def browser(windlass: Windlass) -> Iterator[httpx.Client]:
    """As our own page asks, before anybody has signed in."""
    with a_browser(windlass.url) as browser:
        yield browser


def a_browser(url: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers=OUR_PAGE, trust_env=False, timeout=60)


def sign_in(browser: httpx.Client, key: str, **headers: str) -> httpx.Response:
    return browser.post("/api/v1/session", json={"key": key}, headers=headers)


def hours_left(answer: httpx.Response) -> float:
    return (datetime.fromisoformat(answer.json()["expires_at"]) - datetime.now(UTC)) / timedelta(hours=1)


def cookie_of(answer: httpx.Response) -> Any:
    return SimpleCookie(answer.headers["set-cookie"])["windlass_session"]


def database(windlass: Windlass) -> str:
    return windlass.environment["WINDLASS_DATABASE_URL"]


def test_a_key_becomes_a_cookie_that_stands_for_it(windlass: Windlass, admin: Client, browser: httpx.Client) -> None:
    assert browser.get("/api/v1/session").status_code == 401
    signed_in = sign_in(browser, new_key(admin, "user", "ann"))
    assert signed_in.status_code == 201
    assert set(signed_in.json()) == {"user_id", "role", "expires_at", "faults", "links"}
    assert (signed_in.json()["user_id"], signed_in.json()["role"]) == ("ann", "user")
    assert 11.9 < hours_left(signed_in) <= 12
    cookie = cookie_of(signed_in)
    assert (cookie["httponly"], cookie["samesite"], cookie["path"], cookie["secure"]) == (True, "Strict", "/", "")
    assert int(cookie["max-age"]) == LIFETIME_SECONDS
    assert browser.get("/api/v1/session").json() == signed_in.json()
    task = browser.post("/api/v1/tasks", json=LATER)
    assert (task.status_code, task.json()["user_id"]) == (201, "ann")
    assert browser.delete(f"/api/v1/tasks/{task.json()['task_id']}").status_code == 200
    assert "components" in browser.get("/health").json()
    assert cookie.value not in str(ask(database(windlass), "SELECT * FROM sessions")), "only its hash is kept"
    as_a_key = httpx.get(
        f"{windlass.url}/api/v1/tasks", headers={"Authorization": f"Bearer {cookie.value}"}, timeout=60
    )
    assert as_a_key.status_code == 401


def test_a_new_sign_in_ends_the_session_of_the_same_browser(
    admin: Client, browser: httpx.Client, windlass: Windlass
) -> None:
    former = cookie_of(sign_in(browser, new_key(admin, "user", "ann"))).value
    assert sign_in(browser, A_WRONG_KEY).status_code == 401
    assert browser.get("/api/v1/session").status_code == 200, "a sign-in that fails ends nothing"
    assert sign_in(browser, new_key(admin, "user", "bob")).status_code == 201
    assert browser.get("/api/v1/session").json()["user_id"] == "bob"
    with a_browser(windlass.url) as another:
        another.cookies.set("windlass_session", former)
        assert another.get("/api/v1/session").status_code == 401


def test_over_https_the_cookie_is_secure(admin: Client, browser: httpx.Client) -> None:
    signed_in = sign_in(browser, KEY, Origin="https://windlass.example")
    assert cookie_of(signed_in)["secure"] is True


@pytest.mark.parametrize(
    "body", [{}, {"key": KEY, "link_token": "x"}, {"key": 7}, {"key": ""}, {"password": "x"}, []], ids=repr
)
def test_a_sign_in_says_one_thing(browser: httpx.Client, body: Any) -> None:
    assert browser.post("/api/v1/session", json=body).status_code == 422


def test_guesses_are_slowed_down_and_valid_keys_never(browser: httpx.Client) -> None:
    guessing = {"X-Forwarded-For": "198.51.100.20"}
    for _ in range(FAILURES - 1):
        refused = sign_in(browser, A_WRONG_KEY, **guessing)
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized")
    assert browser.post("/api/v1/session", json={"link_token": "x"}, headers=guessing).status_code == 401
    slowed = sign_in(browser, A_WRONG_KEY, **guessing)
    assert (slowed.status_code, slowed.json()["code"]) == (429, "too-many-attempts")
    assert "set-cookie" not in slowed.headers
    assert sign_in(browser, KEY, **guessing).status_code == 201


def test_signing_out_ends_the_session_everywhere(windlass: Windlass, admin: Client, browser: httpx.Client) -> None:
    sign_in(browser, new_key(admin, "user", "ann"))
    secret = browser.cookies["windlass_session"]
    signed_out = browser.delete("/api/v1/session")
    assert (signed_out.status_code, cookie_of(signed_out)["max-age"]) == (204, "0")
    assert browser.get("/api/v1/session").status_code == 401
    with a_browser(windlass.url) as thief:
        thief.cookies["windlass_session"] = secret
        assert thief.get("/api/v1/session").status_code == 401
    assert admin.http.delete("/api/v1/session").status_code == 204, "a key has nothing to end"
    assert admin.http.get("/api/v1/session").json()["role"] == "admin"


def test_a_link_signs_in_once(windlass: Windlass, admin: Client, browser: httpx.Client) -> None:
    def use(link: str) -> httpx.Response:
        return browser.post("/api/v1/session", json={"link_token": link.partition("#link_token=")[2]})

    made = admin.http.post("/api/v1/session-links")
    assert made.status_code == 201
    assert made.json()["url"].startswith(f"{windlass.url}/sign-in#link_token=")
    assert 0.24 < hours_left(made) <= 0.25
    assert made.json()["url"].rpartition("=")[2] not in str(ask(database(windlass), "SELECT * FROM session_links"))
    assert (use(made.json()["url"]).status_code, use(made.json()["url"]).status_code) == (201, 401)
    assert browser.get("/api/v1/session").json()["user_id"] == "admin"
    (entry,) = admin.http.get("/api/v1/audit", params={"limit": 1}).json()["items"]
    assert (entry["action"], entry["target"]) == ("session-link.create", KEY.split("_")[1])
    old = admin.http.post("/api/v1/session-links").json()["url"]
    execute(database(windlass), "UPDATE session_links SET expires_at = clock_timestamp()")
    assert use(old).status_code == 401
    key = new_key(admin, "user", "ann")
    hers = admin.with_key(key).http.post("/api/v1/session-links").json()["url"]
    admin.http.delete(f"/api/v1/keys/{key.split('_')[1]}").raise_for_status()
    assert use(hers).status_code == 401


FOREIGN = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
    {"Sec-Fetch-Site": "", "Origin": "https://evil.example"},
    {"Sec-Fetch-Site": "", "Origin": "null"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "http://{host}"},
    {"Content-Type": "text/plain"},
    {"Content-Type": "application/x-www-form-urlencoded"},
    {"Content-Type": ""},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=repr)
def test_a_foreign_page_changes_nothing(
    windlass: Windlass, admin: Client, browser: httpx.Client, headers: dict[str, str]
) -> None:
    sign_in(browser, new_key(admin, "user", "ann"))
    task_id = browser.post("/api/v1/tasks", json=LATER).json()["task_id"]
    said = {name: value.replace("{host}", f"127.0.0.1:{windlass.port}") for name, value in headers.items()}
    for method, path in (("POST", "tasks"), ("POST", f"tasks/{task_id}/cancel"), ("DELETE", f"tasks/{task_id}")):
        refused = browser.request(method, f"/api/v1/{path}", json=LATER if path == "tasks" else None, headers=said)
        assert (refused.status_code, refused.json()["code"]) == (403, "cross-site-request"), refused.text
    signing_in = browser.post("/api/v1/session", content=b'{"key": "%s"}' % KEY.encode(), headers=said)
    assert (signing_in.status_code, "set-cookie" in signing_in.headers) == (403, False)
    assert browser.get(f"/api/v1/tasks/{task_id}", headers=said).json()["status"] == "queued", "reading changes nothing"
    with_key = {**said, "Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    assert browser.post(f"/api/v1/tasks/{task_id}/cancel", headers=with_key).status_code == 200, "a key is no cookie"


def test_an_older_browser_says_it_by_its_origin(windlass: Windlass, admin: Client, browser: httpx.Client) -> None:
    sign_in(browser, new_key(admin, "user", "ann"))
    del browser.headers["Sec-Fetch-Site"]
    assert browser.post("/api/v1/tasks", json=LATER).status_code == 403, "nor is nothing enough"
    assert browser.post("/api/v1/tasks", json=LATER, headers={"Origin": windlass.url}).status_code == 201


def test_a_viewer_s_cookie_is_refused_where_its_key_is(admin: Client, browser: httpx.Client) -> None:
    sign_in(browser, new_key(admin, "viewer", "eve"))
    for method, path, body in (
        ("POST", "tasks", LATER),
        ("PATCH", "providers/probe", {"paused": True}),
        ("POST", "keys", {"role": "admin", "user_id": "eve"}),
    ):
        refused = browser.request(method, f"/api/v1/{path}", json=body)
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")


def test_a_session_that_is_used_goes_on_and_one_that_is_not_ends(windlass: Windlass, browser: httpx.Client) -> None:
    def age(hours: float) -> None:
        execute(database(windlass), f"UPDATE sessions SET expires_at = expires_at - interval '{hours} h'")

    sign_in(browser, KEY)
    age(11)
    renewed = browser.get("/api/v1/tasks")
    assert int(cookie_of(renewed)["max-age"]) == LIFETIME_SECONDS
    assert "set-cookie" not in browser.get("/api/v1/tasks").headers, "not at every request"
    assert hours_left(browser.get("/api/v1/session")) > 11.9
    sign_in(browser, KEY)
    age(12)
    assert browser.get("/api/v1/tasks").status_code == 401


def test_the_end_of_a_key_ends_its_sessions_and_their_streams(
    windlass: Windlass, admin: Client, browser: httpx.Client
) -> None:
    key = new_key(admin, "user", "ann")
    sign_in(browser, key)
    task_id = browser.post("/api/v1/tasks", json=LATER).json()["task_id"]
    for path in (f"/api/v1/tasks/{task_id}/stream", "/api/v1/stream"):
        assert browser.get("/api/v1/session").status_code == 200
        with browser.stream("GET", path) as stream:
            assert stream.status_code == 200
            pieces = stream.iter_text()
            next(pieces)
            if path == "/api/v1/stream":
                admin.http.delete(f"/api/v1/keys/{key.split('_')[1]}").raise_for_status()
            else:
                browser.delete("/api/v1/session").raise_for_status()
            rest = "".join(pieces)  # it comes to an end
            assert "event: complete" not in rest
        assert browser.get("/api/v1/session").status_code == 401
        if path != "/api/v1/stream":
            sign_in(browser, key)
    expiring = admin.http.post("/api/v1/keys", json={"role": "user", "user_id": "ann", "expires_in_seconds": 12}).json()
    assert hours_left(sign_in(browser, expiring["key"])) < 0.004
    with browser.stream("GET", "/api/v1/stream") as stream:
        assert re.fullmatch("retry: .*?(: ping\n\n)*", stream.read().decode(), re.DOTALL)
    # The stream ends by this process' clock, which may be a moment ahead of Postgres'.
    wait_until("the session has ended", lambda: browser.get("/api/v1/session").status_code == 401)

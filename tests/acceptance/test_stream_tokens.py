"""Streams for browsers on other origins: a token instead of a header, and the origins that are allowed."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest
from httpx import Response

from tests.support.an_api import new_key
from tests.support.engine.store import Engine
from tests.support.event_reader import reading
from tests.support.installation import KEY, NOBODY, Windlass
from tests.support.stream_api import ANN, api, names, progress, stories, story_of, with_workers
from windlass.services.api.access.stream_tokens import Grant, StreamTokens
from windlass.shared.settings import Settings

__all__ = ["api"]

PAGE = "https://page.example"


def issue(api: Windlass, task_id: UUID, key: str = KEY) -> Response:
    return api.client.with_key(key).http.post(f"/api/v1/tasks/{task_id}/stream-token")


def without_key(api: Windlass, method: str, path: str, **headers: str) -> Response:
    return httpx.request(
        method, f"http://127.0.0.1:{api.port}/api/v1/{path}", headers=headers, timeout=60, trust_env=False
    )


async def status_with(api: Windlass, task_id: UUID, token: str) -> int:
    async with story_of(api.port, task_id, token=token, key=None) as answer:
        return answer.status


@with_workers
async def test_a_token_opens_its_one_stream_and_nothing_else(api: Windlass, engine: Engine) -> None:
    task_id, other = await engine.dead(), await engine.completed()
    issued = issue(api, task_id, ANN)
    assert issued.status_code == 201
    document = issued.json()
    assert set(document) == {"token", "expires_at", "url"}
    left = datetime.fromisoformat(document["expires_at"]) - datetime.now(UTC)
    assert timedelta(minutes=4, seconds=50) < left <= timedelta(minutes=5)
    path = document["url"].partition(str(api.port))[2]
    async with reading(api.port, path, key=None) as stream:
        told = await stream.all()
    assert names(told)[-1] == "error"
    assert told[-1].data["error"]["stack_trace"] is None, "it can do no more than its owner"
    token = document["token"]
    assert await status_with(api, other, token) == 401
    async with stories(api.port, token=token, key=None) as answer:
        assert answer.status == 401
    for method, path in (("GET", ""), ("GET", "/events"), ("POST", "/cancel"), ("POST", "/stream-token")):
        assert without_key(api, method, f"tasks/{task_id}{path}?token={token}").status_code == 401


@with_workers
async def test_a_token_that_is_forged_expired_or_whose_key_is_revoked_opens_nothing(
    api: Windlass, engine: Engine
) -> None:
    task_id = await engine.completed()
    key = new_key(api.client, "user", "ann")
    key_id = key.split("_")[1]
    token: str = issue(api, task_id, key).json()["token"]
    assert await status_with(api, task_id, token) == 200
    said, _, signature = token.partition(".")
    grant = json.loads(urlsafe_b64decode(said + "=="))
    grant[1] = "tests1"
    forged = urlsafe_b64encode(json.dumps(grant).encode()).decode().rstrip("=")
    other = ("B" if signature.startswith("A") else "A") + signature[1:]
    for bad in (f"{forged}.{signature}", f"{said}.{other}", said, f"{said}.", ".", "%C3%A9", "a.b.c", "%00"):
        assert await status_with(api, task_id, bad) == 401
    tokens = StreamTokens(engine.pool)
    over = await tokens.sign(Grant(task_id, key_id, datetime.now(UTC)))
    assert await status_with(api, task_id, over) == 200, "the task has ended only now"
    long_ago = "UPDATE tasks SET completed_at = completed_at - interval '6 min' WHERE task_id = $1"
    await engine.pool.execute(long_ago, task_id)
    assert await status_with(api, task_id, over) == 401
    assert await status_with(api, task_id, token) == 200, "it was made less than five minutes ago"
    api.client.http.delete(f"/api/v1/keys/{key_id}").raise_for_status()
    assert await status_with(api, task_id, token) == 401


@with_workers
async def test_a_token_lives_as_long_as_its_task(api: Windlass, engine: Engine) -> None:
    attempt = await engine.running(user_id="ann")
    token = await StreamTokens(engine.pool).sign(
        Grant(attempt.task_id, "annann", datetime.now(UTC) - timedelta(days=1))
    )
    assert await status_with(api, attempt.task_id, token) == 200
    assert await status_with(api, NOBODY, token) == 401


@with_workers
async def test_open_streams_end_when_their_key_is_revoked(api: Windlass, engine: Engine) -> None:
    attempt = await engine.running()
    key = new_key(api.client, "viewer", "eve")
    token: str = issue(api, attempt.task_id, key).json()["token"]
    async with (
        story_of(api.port, attempt.task_id, key=key) as one,
        stories(api.port, key=key) as many,
        story_of(api.port, attempt.task_id, token=token, key=None) as by_token,
    ):
        assert names(await one.some(2)) == names(await by_token.some(2)) == ["progress", "progress"]
        await progress(engine, attempt, "half way")
        assert [names(await each.some(1)) for each in (one, many, by_token)] == [["progress"]] * 3
        api.client.http.delete(f"/api/v1/keys/{key.split('_')[1]}").raise_for_status()
        assert await engine.finish(attempt, result={"answer": "told too late"}) == "completed"
        for stream in (one, many, by_token):
            assert await stream.all() == [], "it is over, and what came after the revocation was not told"


@with_workers
async def test_a_token_is_good_at_every_api_process(api: Windlass, engine: Engine) -> None:
    """The secret is the database's: what this process signs, that one knows."""
    task_id = await engine.completed()
    token, _ = await StreamTokens(engine.pool).issue(task_id, "annann")
    assert await status_with(api, task_id, token) == 200


@with_workers
async def test_its_address_is_the_configured_one_whatever_host_the_request_names(api: Windlass, engine: Engine) -> None:
    task_id = await engine.completed()
    issued = api.client.http.post(f"/api/v1/tasks/{task_id}/stream-token", headers={"Host": "evil.example"})
    assert issued.json()["url"].startswith(f"http://127.0.0.1:{api.port}/api/v1/tasks/{task_id}/stream?token=")


@with_workers
async def test_nobody_gets_a_token_for_a_foreign_task(api: Windlass, engine: Engine) -> None:
    task_id = await engine.submit(user_id="ben")
    refused = issue(api, task_id, ANN)
    assert (refused.status_code, refused.json()["code"]) == (404, "task-not-found")


@with_workers
async def test_a_page_of_an_allowed_origin_may_call_and_stream(api: Windlass, engine: Engine) -> None:
    def preflight(origin: str, method: str, headers: str) -> Response:
        asked = {
            "Origin": origin, "Access-Control-Request-Method": method, "Access-Control-Request-Headers": headers,
        }  # fmt: skip
        return without_key(api, "OPTIONS", "tasks", **asked)

    allowed = preflight(PAGE, "POST", "authorization, content-type, idempotency-key, last-event-id")
    assert allowed.status_code == 204
    assert allowed.headers["access-control-allow-origin"] == PAGE
    assert {"authorization", "last-event-id"} <= set(allowed.headers["access-control-allow-headers"].split(", "))
    assert "access-control-allow-credentials" not in allowed.headers
    assert preflight("https://elsewhere.example", "GET", "authorization").status_code == 400
    assert preflight(PAGE + ".evil.example", "GET", "authorization").status_code == 400
    assert preflight(PAGE, "GET", "x-other").status_code == 400

    task_id = await engine.completed()
    token = issue(api, task_id).json()["token"]
    answers: dict[str, Any] = {}
    for origin in (PAGE, "https://elsewhere.example"):
        async with story_of(api.port, task_id, token=token, key=None, origin=origin) as stream:
            answers[origin] = stream.headers.get("access-control-allow-origin")
            assert names(await stream.all())[-1] == "complete"
    assert answers == {PAGE: PAGE, "https://elsewhere.example": None}
    async with story_of(api.port, task_id, key=None, origin=PAGE) as refused:
        assert (refused.status, refused.headers["access-control-allow-origin"]) == (401, PAGE), "a page can read why"


@pytest.mark.parametrize("origin", ["*", "https://*.example", "page.example", "https://page.example/", "null"])
def test_an_origin_has_to_be_written_out(origin: str) -> None:
    with pytest.raises(ValueError, match="is no origin"):
        Settings(cors_origins=origin)


@with_workers
async def test_one_task_tells_every_attempt_s_error(api: Windlass, engine: Engine) -> None:
    dead, fine = await engine.dead(), await engine.completed()
    document = api.client.get(str(dead))
    assert [each["attempt"] for each in document["error_history"]] == [1]
    assert document["error_history"][0]["message"] == document["error"]["message"]
    assert document["error_history"][0]["at"].endswith("Z")
    as_ann = api.client.with_key(ANN).get(str(dead))
    assert as_ann["error_history"][0]["stack_trace"] is None
    assert api.client.get(str(fine))["error_history"] == []

"""Providers that call back: whoever has the right address or the right key wakes an attempt, and does nothing else."""

from typing import Any

import httpx
import pytest
from asyncpg import Record as Row

from tests.support.engine.media import Order, ordered
from tests.support.engine.one_order import latest_order
from tests.support.engine.store import Engine
from tests.support.installation import KEY, Windlass
from tests.support.media_api import CALLBACK_KEY, api
from tests.support.stream_api import with_workers
from windlass.services.api.access.throttle import FAILURES
from windlass.services.api.media.callbacks import LARGEST_BYTES
from windlass.shared.store import orders

__all__ = ["api"]

STUDIO = {"provider": "studio"}


def call(api: Windlass, path: str, body: Any = None, *, key: str | None = None, **options: Any) -> httpx.Response:
    headers = {**({} if key is None else {"Authorization": f"Bearer {key}"}), **options.pop("headers", {})}
    if "content" not in options:
        options["json"] = {} if body is None else body
    url = f"{api.url}/api/v1/callbacks/{path}"
    return httpx.post(url, headers=headers, trust_env=False, verify=False, timeout=60, **options)


async def row_of(engine: Engine, order: Order) -> Row:
    row = await latest_order(engine.pool, order.attempt.task_id)
    assert row is not None
    return row


@with_workers
async def test_the_token_in_the_address_is_the_right_to_call(api: Windlass, engine: Engine) -> None:
    order = await ordered(engine, task=STUDIO)
    async with engine.listening("windlass_callback") as heard:
        answer = call(api, order.token, {"job": {"id": "job-9"}, "status": "failed"})
    assert (answer.status_code, answer.json()) == (200, {})
    assert heard == [str(order.attempt.task_id)]
    row = await row_of(engine, order)
    assert row["callback"] == {"job": {"id": "job-9"}, "status": "failed"}
    assert row["status"] == "intended", "what it says is not believed"
    assert row["provider_job_id"] == "job-9", "the answer to the order was lost: a clue worth keeping"
    assert await engine.status(order.attempt.task_id) == "running"


@with_workers
async def test_a_job_that_is_known_is_not_renamed_by_a_callback(api: Windlass, engine: Engine) -> None:
    order = await ordered(engine, task=STUDIO)
    assert await orders.move(engine.pool, order.attempt, order.generation_id, "place", job_id="job-1")
    assert call(api, order.token, {"job": {"id": "another"}}).status_code == 200
    assert (await row_of(engine, order))["provider_job_id"] == "job-1"


@with_workers
async def test_a_callback_that_its_adapter_cannot_read_still_wakes(api: Windlass, engine: Engine) -> None:
    for task in (STUDIO, {"provider": "leonardo"}):
        order = await ordered(engine, task=task)
        async with engine.listening("windlass_callback") as heard:
            assert call(api, order.token, {"unexpected": [1, 2]}).status_code == 200
        assert heard == [str(order.attempt.task_id)]
        assert (await row_of(engine, order))["provider_job_id"] is None


@with_workers
async def test_a_provider_with_one_address_calls_with_its_key_and_the_job_s_id(api: Windlass, engine: Engine) -> None:
    order = await ordered(engine, task=STUDIO)
    assert await orders.move(engine.pool, order.attempt, order.generation_id, "place", job_id="job-31")
    body = {"job": {"id": "job-31"}}
    async with engine.listening("windlass_callback") as heard:
        answer = call(api, "provider/studio", body, key=CALLBACK_KEY)
    assert (answer.status_code, answer.json(), heard) == (200, {}, [str(order.attempt.task_id)])
    other = await ordered(engine, task={"provider": "studio-without-key"})
    assert await orders.move(engine.pool, other.attempt, other.generation_id, "place", job_id="job-of-another")
    wrong: list[tuple[str, Any, str | None]] = [
        ("provider/studio", body, None),
        ("provider/studio", body, CALLBACK_KEY + "x"),
        ("provider/studio", body, KEY),
        ("provider/studio", {"job": {"id": "job-of-another"}}, CALLBACK_KEY),
        ("provider/studio", {"job": {"id": None}}, CALLBACK_KEY),
        ("provider/studio", {"other": "shape"}, CALLBACK_KEY),
        ("provider/studio-without-key", body, CALLBACK_KEY),
        ("provider/studio-without-key", body, None),
        ("provider/nobody", body, CALLBACK_KEY),
    ]
    async with engine.listening("windlass_callback") as heard:
        answers = [call(api, path, sent, key=key) for path, sent, key in wrong]
    assert [answer.status_code for answer in answers] == [404] * len(wrong)
    assert len({answer.json()["detail"] for answer in answers}) == 1, "nothing helps guessing"
    assert heard == []


@with_workers
async def test_secrets_in_a_callback_are_not_kept(api: Windlass, engine: Engine) -> None:
    order = await ordered(engine, task=STUDIO)
    body = {
        "job": {"id": "job-2"},
        "apiKey": {"id": 7, "webhookCallbackApiKey": "canary-one"},
        "data": [{"callbackApiKey": "canary-two", "userToken": "canary-three", "tokens": 12}],
        "note": f"Authorization: Bearer canary-four and {CALLBACK_KEY}",
    }
    assert call(api, order.token, body).status_code == 200
    kept = (await row_of(engine, order))["callback"]
    assert "canary" not in str(kept)
    assert CALLBACK_KEY not in str(kept)
    assert (kept["job"], kept["data"][0]["tokens"]) == ({"id": "job-2"}, 12)


@with_workers
async def test_a_body_has_to_be_a_small_json_object(api: Windlass, engine: Engine) -> None:
    order = await ordered(engine, task=STUDIO)
    large = call(api, order.token, {"text": "x" * LARGEST_BYTES})
    assert (large.status_code, large.json()["code"]) == (413, "body-too-large")
    assert f"{LARGEST_BYTES:,}" in large.json()["detail"]
    assert call(api, order.token, {"text": "x" * (LARGEST_BYTES - 100)}).status_code == 200
    assert call(api, order.token, content=b"{", headers={"Content-Type": "application/json"}).status_code == 400
    assert call(api, order.token, [1]).json()["code"] == "invalid-callback"


@pytest.mark.parametrize("path", ["a-wrong-token", "provider/studio"])
def test_who_only_guesses_is_told_to_wait_and_the_right_one_never(api: Windlass, path: str) -> None:
    @with_workers
    async def guess(api: Windlass, engine: Engine) -> None:
        order = await ordered(engine, task=STUDIO)
        from_there = {"X-Forwarded-For": f"203.0.113.{len(path)}"}
        answers = [call(api, path, headers=from_there).status_code for _ in range(FAILURES + 1)]
        assert answers == [404] * FAILURES + [429]
        assert call(api, order.token, headers=from_there).status_code == 200

    guess(api)

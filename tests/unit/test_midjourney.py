"""Midjourney's adapter on the literal bodies of midapi's documentation, over real sockets."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from ipaddress import ip_network
from typing import Any

import pytest

from tests.support.providers.provider_bodies import MIDAPI_CALLBACK, MIDAPI_ORDERED, MIDAPI_RECORD
from tests.support.providers.small_server import SmallServer, answer, on_a_loop, serving
from windlass.shared.errors import (
    ContentRejected,
    InvalidInput,
    NotFound,
    QuotaExhausted,
    RateLimited,
    ServiceUnavailable,
    TaskError,
    Unauthorized,
)
from windlass.shared.providers.base import CannotTell, Done, Failed, Order, OrderUnknown, Pending
from windlass.shared.providers.http.addresses import Allowances
from windlass.shared.providers.http.network import open_client
from windlass.shared.providers.midjourney import Adapter
from windlass.shared.toml_tables import Endpoint

KEY = "midapi-key-0123456789"
JOB = "mj_task_abcdef123456"
PICTURES = ["https://tempfile.example/0_0.jpeg", "https://tempfile.example/0_1.jpeg"]


def record(flag: Any, **fields: Any) -> dict[str, Any]:
    data = {**MIDAPI_RECORD["data"], "successFlag": flag, "resultInfoJson": None}
    return {**MIDAPI_RECORD, "data": data | fields}


@asynccontextmanager
async def midjourney(body: Any, *, status: int = 200) -> AsyncIterator[tuple[Adapter, SmallServer]]:
    async with (
        serving(lambda _: answer(status, body)) as server,
        open_client(Allowances((ip_network("127.0.0.1"),)), timeout_seconds=60) as http,
    ):
        yield Adapter("midjourney", Endpoint(server.url, KEY), http), server


async def polled(body: Any) -> Pending | Done | Failed:
    async with midjourney(body) as (adapter, _):
        return await adapter.poll(JOB)


async def error_of_poll(body: Any) -> TaskError:
    found = await polled(body)
    assert isinstance(found, Failed)
    return found.error


async def sent_for(order: Order) -> Any:
    async with midjourney(MIDAPI_ORDERED) as (adapter, server):
        assert (await adapter.order(order)).job_id == JOB
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/api/v1/mj/generate")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    return request.json


@on_a_loop
async def test_an_order_says_its_type_its_picture_and_where_its_end_may_be_told() -> None:
    params = {"speed": "fast", "aspectRatio": "16:9", "version": "7", "callBackUrl": "https://elsewhere.example"}
    ours = "https://windlass.example/callbacks/token"
    assert await sent_for(Order("txt2img", "a lighthouse", "r", params=params, callback_url=ours)) == {
        "taskType": "mj_txt2img",
        "prompt": "a lighthouse",
        "speed": "fast",
        "aspectRatio": "16:9",
        "version": "7",
        "callBackUrl": ours,
    }
    for action, kind in (("img2img", "mj_img2img"), ("img2vid", "mj_video")):
        body = await sent_for(Order(action, "at night", "r", source_image="https://pictures.example/a.png"))
        assert body == {"taskType": kind, "prompt": "at night", "fileUrls": ["https://pictures.example/a.png"]}
    theirs = {"taskType": "mj_video", "fileUrls": ["https://elsewhere.example"]}
    order = Order("img2img", "at night", "r", source_image="https://pictures.example/a.png", params=theirs)
    assert await sent_for(order) == {
        "taskType": "mj_img2img",
        "prompt": "at night",
        "fileUrls": ["https://pictures.example/a.png"],
    }


@pytest.mark.parametrize(
    ("code", "kind"),
    [(401, Unauthorized), (402, QuotaExhausted), (422, InvalidInput), (429, RateLimited), (503, ServiceUnavailable)],
)
@on_a_loop
async def test_a_refusal_may_stand_in_the_body_alone(code: int, kind: type[TaskError]) -> None:
    async with midjourney({"code": code, "msg": "no", "data": None}) as (adapter, _):
        with pytest.raises(kind, match=f"midjourney answered {code}: no"):
            await adapter.order(Order("txt2img", "a lighthouse", "r"))


@pytest.mark.parametrize(
    "body", [{"code": 500, "msg": "oh"}, {"code": 200, "data": None}, {"data": {"taskId": JOB}}, [], {"code": "200"}]
)
@on_a_loop
async def test_an_answer_that_says_neither_yes_nor_no_leaves_the_order_in_doubt(body: Any) -> None:
    async with midjourney(body) as (adapter, _):
        with pytest.raises(OrderUnknown):
            await adapter.order(Order("txt2img", "a lighthouse", "r"))


@on_a_loop
async def test_a_record_is_asked_for_by_the_job() -> None:
    async with midjourney(record(0)) as (adapter, server):
        assert await adapter.poll(JOB) == Pending(None)
    assert server.requests[0].path == f"/api/v1/mj/record-info?taskId={JOB}"


@on_a_loop
async def test_results_are_read_as_objects_as_strings_and_as_json_in_a_string() -> None:
    documented = await polled(MIDAPI_RECORD)
    assert isinstance(documented, Done)
    assert documented.urls == ("https://…jpeg",)
    objects = {"resultUrls": [{"resultUrl": url} for url in PICTURES]}
    shapes: list[Any] = [objects, {"resultUrls": PICTURES}, json.dumps(objects)]
    for info in shapes:
        done = await polled(record(1, resultInfoJson=info))
        assert isinstance(done, Done)
        assert done.urls == tuple(PICTURES)
    nothing: list[Any] = [None, {}, {"resultUrls": None}, "no json", {"resultUrls": [{}, 5]}]
    for info in nothing:
        assert isinstance(await error_of_poll(record(1, resultInfoJson=info)), NotFound)


@pytest.mark.parametrize("flag", [2, 3])
@on_a_loop
async def test_a_failed_job_says_why(flag: int) -> None:
    failed = await error_of_poll(record(flag, errorCode=500, errorMessage="the fleet is asleep"))
    assert isinstance(failed, ServiceUnavailable)
    assert "the fleet is asleep" in failed.message
    assert isinstance(await error_of_poll(record(flag)), ServiceUnavailable)
    moderated = record(flag, errorCode="422", errorMessage="refused by moderation")
    assert isinstance(await error_of_poll(moderated), ContentRejected)


@on_a_loop
async def test_a_job_that_it_does_not_know_is_not_found() -> None:
    for body in ({"code": 422, "msg": "recordInfo is null"}, {"code": 404, "msg": "no"}, {"code": 200, "data": None}):
        assert isinstance(await error_of_poll(body), NotFound)


@on_a_loop
async def test_an_answer_that_is_not_understood_ends_no_job() -> None:
    for body in (record(7), record(None), {"code": 200, "data": "x"}, {"code": 500, "msg": "oh"}):
        with pytest.raises(ServiceUnavailable):
            await polled(body)


@on_a_loop
async def test_a_callback_tells_which_job_and_nothing_can_be_found_or_taken_back() -> None:
    async with midjourney({}) as (adapter, server):
        assert adapter.job_of_callback(MIDAPI_CALLBACK) == "…"
        others: list[Any] = [{}, [], None, {"data": {}}, {"data": {"taskId": None}}]
        for other in others:
            assert adapter.job_of_callback(other) is None
        found = await adapter.find(Order("txt2img", "a lighthouse", "r"), datetime.now(UTC))
        assert isinstance(found, CannotTell)
        assert not await adapter.cancel(JOB)
        assert server.connections == 0

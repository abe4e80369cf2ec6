"""Leonardo's adapter on the literal bodies of its documentation, over real sockets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network
from typing import Any

import pytest

from tests.support.providers.provider_bodies import (
    LEONARDO_BAD_KEY,
    LEONARDO_COMPLETE,
    LEONARDO_DELETED,
    LEONARDO_NO_KEY,
    LEONARDO_ORDERED,
    LEONARDO_UNKNOWN,
    LEONARDO_WEBHOOK,
)
from tests.support.providers.small_server import SmallServer, answer, on_a_loop, serving
from windlass.shared.errors import ContentRejected, NotFound, ServiceUnavailable, TaskError, Unauthorized
from windlass.shared.providers.base import Done, Failed, Order, OrderUnknown, Pending
from windlass.shared.providers.http.addresses import Allowances
from windlass.shared.providers.http.network import open_client
from windlass.shared.providers.leonardo import Adapter
from windlass.shared.toml_tables import Endpoint

KEY = "0f0f0f0f-1111-2222-3333-444444444444"
JOB = "9a1b2c3d-0000-4000-8000-123456789abc"
ORDER = Order("txt2img", "a lighthouse", "ours-1", params={"num_images": 2, "seed": 7, "prompt": "theirs"})


def generation(status: str, *images: dict[str, Any]) -> dict[str, Any]:
    documented = LEONARDO_COMPLETE["generations_by_pk"]
    return {"generations_by_pk": {**documented, "status": status, "generated_images": list(images)}}


def image(name: str, *, nsfw: bool = False, film: str | None = None) -> dict[str, Any]:
    documented = LEONARDO_COMPLETE["generations_by_pk"]["generated_images"][0]
    return {**documented, "url": f"https://cdn.leonardo.ai/{name}.jpg", "nsfw": nsfw, "motionMP4URL": film}


@asynccontextmanager
async def leonardo(body: Any, *, status: int = 200) -> AsyncIterator[tuple[Adapter, SmallServer]]:
    """An adapter and a server that answers everything so."""
    async with (
        serving(lambda _: answer(status, body)) as server,
        open_client(Allowances((ip_network("127.0.0.1"),)), timeout_seconds=60) as http,
    ):
        yield Adapter("leonardo", Endpoint(f"{server.url}/api/rest/v1", KEY), http), server


async def polled(body: Any) -> Pending | Done | Failed:
    async with leonardo(body) as (adapter, _):
        return await adapter.poll(JOB)


async def error_of_poll(body: Any) -> TaskError:
    found = await polled(body)
    assert isinstance(found, Failed)
    return found.error


@on_a_loop
async def test_an_order_has_the_prompt_the_key_and_every_parameter() -> None:
    async with leonardo(LEONARDO_ORDERED) as (adapter, server):
        ordered = await adapter.order(ORDER)
    assert (ordered.job_id, ordered.response) == ("…", LEONARDO_ORDERED)
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/api/rest/v1/generations")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.json == {"num_images": 2, "seed": 7, "prompt": "a lighthouse"}


@pytest.mark.parametrize("body", [{}, [], {"sdGenerationJob": None}, {"error": "?", "code": "unexpected"}])
@on_a_loop
async def test_an_answer_without_a_job_leaves_the_order_in_doubt(body: Any) -> None:
    async with leonardo(body) as (adapter, _):
        with pytest.raises(OrderUnknown):
            await adapter.order(ORDER)


@pytest.mark.parametrize(("status", "body"), [(401, LEONARDO_NO_KEY), (401, LEONARDO_BAD_KEY), (500, LEONARDO_BAD_KEY)])
@on_a_loop
async def test_a_key_that_is_not_accepted_is_told_whatever_the_status(status: int, body: Any) -> None:
    async with leonardo(body, status=status) as (adapter, _):
        with pytest.raises(Unauthorized, match="hook"):
            await adapter.order(ORDER)


@on_a_loop
async def test_a_pending_job_is_pending() -> None:
    assert await polled(generation("PENDING")) == Pending(None)


@on_a_loop
async def test_a_complete_job_has_its_pictures_and_a_film_rather_than_its_first_frame() -> None:
    done = await polled(generation("COMPLETE", image("one"), image("two", film="https://cdn.leonardo.ai/two.mp4")))
    assert isinstance(done, Done)
    assert done.urls == ("https://cdn.leonardo.ai/one.jpg", "https://cdn.leonardo.ai/two.mp4")


@on_a_loop
async def test_what_is_marked_as_nsfw_is_left_out_and_if_all_is_the_job_was_rejected() -> None:
    some = await polled(generation("COMPLETE", image("one", nsfw=True), image("two")))
    assert isinstance(some, Done)
    assert some.urls == ("https://cdn.leonardo.ai/two.jpg",)
    assert isinstance(await error_of_poll(generation("COMPLETE", image("one", nsfw=True))), ContentRejected)


@on_a_loop
async def test_a_failed_an_unknown_and_an_empty_job_have_failed() -> None:
    assert isinstance(await error_of_poll(generation("FAILED")), ServiceUnavailable)
    assert isinstance(await error_of_poll(LEONARDO_UNKNOWN), NotFound)
    assert isinstance(await error_of_poll(generation("COMPLETE")), NotFound)


@pytest.mark.parametrize("body", [{}, [], "x", generation("DREAMING"), {"generations_by_pk": "x"}])
@on_a_loop
async def test_an_answer_that_is_not_understood_ends_no_job(body: Any) -> None:
    with pytest.raises(ServiceUnavailable, match="something else than expected"):
        await polled(body)


@on_a_loop
async def test_a_callback_tells_which_job_and_nothing_else_is_read_from_it() -> None:
    async with leonardo({}) as (adapter, _):
        assert adapter.job_of_callback(LEONARDO_WEBHOOK) == "…"
        others: list[Any] = [{}, [], None, "x", {"data": None}, {"data": {"object": {"id": 5}}}]
        for other in others:
            assert adapter.job_of_callback(other) is None


@on_a_loop
async def test_a_deletion_counts_when_it_is_confirmed() -> None:
    async with leonardo(LEONARDO_DELETED) as (adapter, server):
        assert await adapter.cancel(JOB)
        assert (server.requests[0].method, server.requests[0].path) == ("DELETE", f"/api/rest/v1/generations/{JOB}")
    async with leonardo({"delete_generations_by_pk": None}) as (adapter, _):
        assert not await adapter.cancel(JOB)

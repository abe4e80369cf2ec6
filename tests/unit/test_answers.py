"""What providers' answers mean: literal bodies, statuses and broken connections on real sockets."""

import json
from datetime import UTC, datetime
from ipaddress import ip_network
from typing import Any

import httpx
import pytest

from tests.support.providers.small_server import HANG, Reply, answer, on_a_loop, serving
from windlass.services.laptop.ports import free_port
from windlass.shared.errors import (
    ContentRejected,
    Forbidden,
    InvalidInput,
    NetworkTimeout,
    NotFound,
    QuotaExhausted,
    RateLimited,
    ServiceUnavailable,
    TaskError,
    Unauthorized,
)
from windlass.shared.providers.base import OrderUnknown
from windlass.shared.providers.http.addresses import Allowances
from windlass.shared.providers.http.answers import error_of, placing_an_order, retry_after_of
from windlass.shared.providers.http.exchange import LARGEST_ANSWER_BYTES, ask
from windlass.shared.providers.http.network import open_client

LOOPBACK = Allowances((ip_network("127.0.0.1/32"),))
KEY = "11111111-2222-3333-4444-555555555555"
TO_BE_REACHED_SECONDS = 2
"""Also on a busy machine an order is on its way before this is over, and nobody knows what became of it."""


def error_for(status: int, body: Any = "", **headers: str) -> TaskError:
    text = body if isinstance(body, str) else json.dumps(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return error_of("leonardo", httpx.Response(status, headers=named), text)


async def outcome(reply: Reply, *, seconds: float = 60, key: str = KEY) -> Any:
    """What an order comes to that is answered so."""
    async with serving(lambda _: reply) as server, open_client(LOOPBACK, timeout_seconds=seconds) as http:
        try:
            with placing_an_order():
                return await ask(http, "leonardo", "POST", f"{server.url}/generations", key=key, body={"prompt": "a"})
        except (TaskError, OrderUnknown) as error:
            return error


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (302, ServiceUnavailable),
        (400, InvalidInput),
        (401, Unauthorized),
        (402, QuotaExhausted),
        (403, Forbidden),
        (404, NotFound),
        (408, NetworkTimeout),
        (409, InvalidInput),
        (410, NotFound),
        (413, InvalidInput),
        (422, InvalidInput),
        (425, ServiceUnavailable),
        (429, RateLimited),
        (451, ContentRejected),
        (500, ServiceUnavailable),
        (502, ServiceUnavailable),
        (503, ServiceUnavailable),
        (504, ServiceUnavailable),
        (529, ServiceUnavailable),
    ],
)
def test_a_status_has_its_error(status: int, kind: type[TaskError]) -> None:
    error = error_for(status)
    assert type(error) is kind
    assert error.details["status"] == status
    assert error.message.startswith(f"leonardo answered {status}")


@pytest.mark.parametrize(
    ("body", "words", "code"),
    [
        ({"error": "invalid file extension", "path": "$", "code": "unexpected"}, "invalid file extension",
         "unexpected"),
        ({"error": {"code": 400, "message": "no such model", "metadata": {"provider_name": "X"}}}, "no such model",
         None),
        ({"code": 422, "msg": "prompt is missing"}, "prompt is missing", 422),
        ({"detail": "width must be a multiple of 8"}, "multiple of 8", None),
        ("<html><head><title>Bad</title><style>b{}</style></head><body>\n<h1>Bad request</h1></body></html>",
         "400: Bad Bad request", None),
        ("[" * 100_000, "[[[", None),
    ],
)  # fmt: skip
def test_an_error_says_what_the_provider_said(body: Any, words: str, code: object) -> None:
    error = error_for(400, body)
    assert words in error.message
    assert len(error.message) < 400
    assert error.details.get("code") == code


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (403, {"error": {"code": 403, "message": "Input refused", "metadata": {"reasons": ["violence"],
         "flagged_input": "…"}}}),
        (403, {"error": "blocked by a guardrail"}),
        (400, {"error": "content moderated", "code": "unexpected"}),
        (422, {"code": 422, "msg": "The prompt was flagged as violating content policies"}),
    ],
)  # fmt: skip
def test_moderation_is_told_from_other_refusals(status: int, body: Any) -> None:
    assert type(error_for(status, body)) is ContentRejected


def test_a_quota_with_a_time_to_come_back_is_a_rate() -> None:
    error = error_for(402, retry_after="30")
    assert isinstance(error, RateLimited)
    assert error.retry_after == 30


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "Mon, 16 Nov 2026 12:01:00 GMT"}, 60),
        ({"retry-after": "Mon, 16 Nov 2026 11:00:00 GMT"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e999"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_the_time_to_come_back_is_seconds_or_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_of(headers, now=datetime(2026, 11, 16, 12, tzinfo=UTC)) == seconds


def test_a_date_to_come_back_at_is_by_the_provider_s_own_clock() -> None:
    headers = {"retry-after": "Mon, 16 Nov 2020 12:01:00 GMT", "date": "Mon, 16 Nov 2020 12:00:30 GMT"}
    assert retry_after_of(headers) == 30


@pytest.mark.parametrize("status", [302, 400, 401, 402, 403, 404, 422, 429, 503])
@on_a_loop
async def test_a_refused_order_was_certainly_not_taken(status: int) -> None:
    error = await outcome(answer(status, {"error": "no"}, retry_after="5", location="https://elsewhere.example/"))
    assert isinstance(error, TaskError)
    assert error.details["status"] == status


@pytest.mark.parametrize(
    "reply",
    [
        answer(408),
        answer(500, {"error": "oh"}),
        answer(502, b"<html>Bad gateway</html>"),
        answer(504),
        answer(200, b"<html>Welcome</html>"),
        answer(200, b""),
        None,
        b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{",
        b"nonsense\r\n\r\n",
    ],
    ids=["408", "500", "502", "504", "a page", "nothing", "drop", "cut off", "no http"],
)
@on_a_loop
async def test_an_order_whose_fate_is_open_is_unknown(reply: Reply) -> None:
    error = await outcome(reply)
    assert isinstance(error, OrderUnknown)
    assert "leonardo" in str(error)
    assert isinstance(error.__cause__, TaskError)


@pytest.mark.parametrize("reply", [HANG, (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", HANG)])
@on_a_loop
async def test_an_order_without_an_answer_in_time_is_unknown(reply: Reply) -> None:
    error = await outcome(reply, seconds=TO_BE_REACHED_SECONDS)
    assert isinstance(error, OrderUnknown)
    assert isinstance(error.__cause__, NetworkTimeout)


@on_a_loop
async def test_an_answer_that_comes_in_drops_is_not_waited_for_for_ever() -> None:
    drops = [b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", *[b" ", 0.05] * 1000]
    error = await outcome(drops, seconds=TO_BE_REACHED_SECONDS)
    assert isinstance(error, OrderUnknown)
    assert isinstance(error.__cause__, NetworkTimeout)


@on_a_loop
async def test_an_answer_that_does_not_end_is_cut_off() -> None:
    endless = [b"HTTP/1.1 200 OK\r\n\r\n", *[b"[" * 100_000] * (LARGEST_ANSWER_BYTES // 100_000 + 1), HANG]
    error = await outcome(endless)
    assert isinstance(error, OrderUnknown)
    assert isinstance(error.__cause__, ServiceUnavailable)


@on_a_loop
async def test_an_order_that_never_left_was_certainly_not_taken() -> None:
    async with open_client(LOOPBACK, timeout_seconds=60) as http:
        for url, kind in (
            (f"http://127.0.0.1:{free_port()}/generations", NetworkTimeout),
            ("http://10.0.0.1/generations", Forbidden),
            ("ftp://127.0.0.1/generations", InvalidInput),
            ("https://leonardo.example:port/generations", InvalidInput),
        ):
            with pytest.raises(kind), placing_an_order():
                await ask(http, "leonardo", "POST", url, key=KEY, body={})


@pytest.mark.parametrize("stray", ["\n", "ü", "\x00"])
@on_a_loop
async def test_a_key_that_cannot_be_written_is_told_without_quoting_it(stray: str) -> None:
    error = await outcome(answer(), key=KEY + stray)
    assert isinstance(error, InvalidInput)
    assert KEY not in str(error)


@on_a_loop
async def test_no_error_quotes_the_key() -> None:
    error = await outcome(answer(401, {"error": f"the key {KEY} is not known"}))
    assert isinstance(error, Unauthorized)
    assert KEY not in error.message
    assert "is not known" in error.message

"""OpenRouter's errors, before the first word and after it, and what they mean for a task."""

import json
from typing import Any

import pytest

from tests.support.providers.scripted_openrouter import COMMENT, END, KEY, USAGE, Provider, chunk, failure, kind_of

BY_CODE = [
    (400, "InvalidInput"), (401, "Unauthorized"), (402, "QuotaExhausted"), (404, "NotFound"), (408, "NetworkTimeout"),
    (429, "RateLimited"), (502, "ServiceUnavailable"), (503, "ServiceUnavailable"),
]  # fmt: skip
MODERATED = {
    "error": {
        "code": 403,
        "message": "Input was flagged",
        "metadata": {"reasons": ["violence"], "flagged_input": "the …", "provider_name": "Vendor"},
    }
}


def told(code: Any, message: str = "Something happened") -> bytes:
    return json.dumps({"error": {"code": code, "message": message}}).encode()


@pytest.mark.parametrize(("code", "name"), BY_CODE)
def test_an_error_before_the_first_word_has_its_status(code: int, name: str) -> None:
    error = failure(Provider((told(code),), status=f"{code} Oh", content_type="application/json"))
    assert kind_of(error) == name
    assert str(error) == f"openrouter answered {code}: Something happened"


@pytest.mark.parametrize(("code", "name"), [*BY_CODE, ("429", "RateLimited"), ("server_error", "ServiceUnavailable")])
@pytest.mark.parametrize(
    ("content_type", "answer"),
    [("text/event-stream", "data: {}\n\n"), ("application/json", "{}")],
    ids=["in the stream", "as the body"],
)
def test_an_error_inside_a_200_has_its_code(code: Any, name: str, content_type: str, answer: str) -> None:
    body = answer.format(told(code).decode()).encode()
    before = (COMMENT, chunk("A wind")) if content_type == "text/event-stream" else ()
    assert kind_of(failure(Provider((*before, body), content_type=content_type))) == name


def test_a_chunk_may_tell_of_its_error_and_end_in_one() -> None:
    ending = chunk("", finish="error", error={"code": 429, "message": "Rate limit exceeded upstream"})
    assert kind_of(failure(Provider((chunk("A wind"), ending)))) == "RateLimited"
    assert kind_of(failure(Provider((chunk("A wind"), chunk("", finish="error"), END)))) == "ServiceUnavailable"


def test_a_refusal_by_moderation_is_told_from_other_refusals() -> None:
    refused = Provider((json.dumps(MODERATED).encode(),), status="403 Forbidden", content_type="application/json")
    error = failure(refused)
    assert (kind_of(error), error.kind) == ("ContentRejected", "permanent")
    assert "violence" in str(error)
    forbidden = Provider((told(403, "This key may not"),), status="403 Forbidden", content_type="application/json")
    assert kind_of(failure(forbidden)) == "Forbidden"
    in_stream = b"data: " + json.dumps(MODERATED).encode() + b"\n\n"
    assert kind_of(failure(Provider((chunk("A wind"), in_stream)))) == "ContentRejected"
    filtered = Provider((chunk("A wind"), chunk("", finish="content_filter", usage=USAGE), END))
    assert kind_of(failure(filtered)) == "ContentRejected"


def test_the_time_that_a_429_names_is_passed_on() -> None:
    error = failure(
        Provider((told(429),), status="429 Slow down", content_type="application/json", headers="Retry-After: 17\r\n")
    )
    assert error.details["retry_after"] == 17


@pytest.mark.parametrize(
    ("content_type", "answer"),
    [
        ("text/html", b"<html><body>Bad gateway, but with 200</body></html>"),
        ("application/json", b"[]"),
        ("text/event-stream", b"data: {not json}\n\n"),
        ("text/event-stream", b'data: {"choices": [{"delta": {"content": ["?"]}}]}\n\n'),
        ("text/event-stream", b'data: {"choices": "none"}\n\n'),
        ("text/event-stream", b"data: " + b"[" * 100_000 + b"\n\n"),
    ],
)
def test_what_is_no_chat_completion_is_the_providers_fault(content_type: str, answer: bytes) -> None:
    error = failure(Provider((answer,), content_type=content_type))
    assert kind_of(error) == "ServiceUnavailable"
    assert "something else than expected" in str(error)


def test_the_key_stays_out_of_what_is_told() -> None:
    body = told(401, f"No such key: {KEY}")
    assert KEY not in str(failure(Provider((body,), status="401 No", content_type="application/json")))
    assert KEY not in str(failure(Provider((b"data: " + body + b"\n\n",))))

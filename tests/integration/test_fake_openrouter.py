"""The fake OpenRouter, against the bodies that its documentation shows."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.providers import provider_bodies
from tests.support.providers.fake_providers import FakeProviders
from tests.support.providers.provider_bodies import differences
from tests.support.waiting import wait_until

TEXT = "The windlass hauls a heavy load while its pawl holds it. It never slips. Sailors know why that is."
SUMMARY = TEXT


@pytest.fixture
def openrouter(fake: FakeProviders) -> Iterator[httpx.Client]:
    with fake.client("openrouter") as client:
        yield client


def ask(client: httpx.Client, text: str = TEXT, **fields: Any) -> httpx.Response:
    return client.post("/chat/completions", json=a_request(text, **fields))


def a_request(text: str, **fields: Any) -> dict[str, Any]:
    return {"model": "openrouter/auto", "messages": [{"role": "user", "content": text}], **fields}


def events(answer: httpx.Response) -> list[str]:
    return [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]


def said(chunks: list[dict[str, Any]]) -> str:
    return "".join(chunk["choices"][0]["delta"]["content"] for chunk in chunks)


def finish_reason(chunk: dict[str, Any]) -> str | None:
    reason: str | None = chunk["choices"][0]["finish_reason"]
    return reason


def test_a_completion_summarises_what_was_sent(openrouter: httpx.Client) -> None:
    answer = ask(openrouter)
    assert differences(provider_bodies.COMPLETION, answer.json()) == []
    assert answer.json()["choices"][0]["message"]["content"] == SUMMARY
    assert answer.headers["x-generation-id"] == answer.json()["id"]
    about = openrouter.get("/generation", params={"id": answer.json()["id"]}).json()["data"]
    assert about["total_cost"] == answer.json()["usage"]["cost"]
    assert openrouter.get("/generation", params={"id": "gen-none"}).status_code == 404


def test_a_stream_has_comments_chunks_usage_and_an_end(openrouter: httpx.Client) -> None:
    answer = ask(openrouter, stream=True)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.startswith(": OPENROUTER PROCESSING\n\n")
    *chunks, done = events(answer)
    assert done == "[DONE]"
    parsed = [json.loads(chunk) for chunk in chunks]
    assert all(differences(provider_bodies.CHUNK, chunk) == [] for chunk in parsed if not finish_reason(chunk))
    assert said(parsed) == SUMMARY
    assert [finish_reason(chunk) for chunk in parsed][-2:] == ["stop", None]
    assert [index for index, chunk in enumerate(parsed) if "usage" in chunk] == [len(parsed) - 1]
    assert differences(provider_bodies.COMPLETION["usage"], parsed[-1]["usage"]) == []


def test_the_models_are_public_and_the_key_is_not(fake: FakeProviders) -> None:
    with fake.client("openrouter", key=None) as nobody:
        assert "pricing" in nobody.get("/models").json()["data"][0]
        assert nobody.get("/key").status_code == 401
    with fake.client("openrouter") as somebody:
        assert "usage" in somebody.get("/key").json()["data"]


@pytest.mark.parametrize(("key", "status"), [(None, 401), ("bad-key", 401), ("no-credit", 402)])
def test_keys_that_are_not_taken(fake: FakeProviders, key: str | None, status: int) -> None:
    with fake.client("openrouter", key) as client:
        answer = ask(client)
    assert answer.status_code == answer.json()["error"]["code"] == status
    assert differences(provider_bodies.OPENROUTER_ERROR, answer.json()) == []
    assert fake.books("openrouter")["number_of_orders"] == 0


def test_refusals(openrouter: httpx.Client) -> None:
    moderated = ask(openrouter, "something moderated")
    assert moderated.status_code == 403
    assert differences(provider_bodies.OPENROUTER_MODERATION, moderated.json()) == []
    told_when = ask(openrouter, f"{TEXT} [[429=7]]", stream=True)
    assert (told_when.status_code, told_when.headers["retry-after"]) == (429, "7")
    not_told = ask(openrouter, f"{TEXT} [[503]]")
    assert (not_told.status_code, "retry-after" in not_told.headers) == (503, False)
    assert openrouter.post("/chat/completions", json={"model": "a/b"}).status_code == 400
    assert openrouter.post("/chat/completions", content="no json").status_code == 400


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_page_instead_of_an_answer(fake: FakeProviders, openrouter: httpx.Client, is_streamed: bool) -> None:
    answer = ask(openrouter, f"{TEXT} [[garbage]]", stream=is_streamed)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert fake.books("openrouter")["running"] == 0


def test_an_error_inside_a_stream_that_began_well(openrouter: httpx.Client, fake: FakeProviders) -> None:
    answer = ask(openrouter, f"{TEXT} [[error-in-stream=429]]", stream=True)
    assert answer.status_code == 200
    *chunks, error = [json.loads(data) for data in events(answer)]
    assert SUMMARY.startswith(said(chunks))
    assert said(chunks)
    assert error["error"]["code"] == 429
    assert error["choices"][0]["finish_reason"] == "error"
    whole = ask(openrouter, f"{TEXT} [[error-in-stream]]")
    assert (whole.status_code, whole.json()["error"]["code"]) == (200, 502)
    assert [order["state"] for order in fake.books("openrouter")["orders"]] == ["failed", "failed"]


def test_a_stream_that_is_lost_in_the_middle(openrouter: httpx.Client) -> None:
    body = a_request(f"{TEXT} [[drop-stream=3]]", stream=True)
    with openrouter.stream("POST", "/chat/completions", json=body) as answer:
        received: list[str] = []
        with pytest.raises(httpx.RemoteProtocolError):
            received.extend(answer.iter_lines())
    assert sum(line.startswith("data: ") for line in received) == 3


def test_a_stream_that_ends_in_order_but_too_early(openrouter: httpx.Client) -> None:
    received = events(ask(openrouter, f"{TEXT} [[no-done]]", stream=True))
    assert said([json.loads(data) for data in received]) == SUMMARY
    assert not any("usage" in data or "DONE" in data for data in received)


def test_a_call_counts_while_it_streams_and_no_longer(fake: FakeProviders, openrouter: httpx.Client) -> None:
    body = a_request(f"{TEXT} [[pace=30]]", stream=True)
    with openrouter.stream("POST", "/chat/completions", json=body), fake.client("openrouter") as other:
        with other.stream("POST", "/chat/completions", json=body):
            wait_until("two streams", lambda: fake.books("openrouter")["open_streams"] == 2)
        wait_until("one stream", lambda: fake.books("openrouter")["open_streams"] == 1)
    wait_until("no stream", lambda: fake.books("openrouter")["running"] == 0)
    ask(openrouter)
    books = fake.books("openrouter")
    assert books["most_running"] == 2
    assert [order["state"] for order in books["orders"]] == ["left", "left", "complete"]
    assert books["calls"]["POST /chat/completions"] == {"200": 3}

"""OpenRouter's streams as its documentation shows them, byte for byte, and everything that can befall them."""

import asyncio
import gzip
import json
from contextlib import aclosing

import pytest

from tests.support.providers.scripted_openrouter import (
    COMMENT,
    END,
    FINISHED,
    KEY,
    MODEL,
    QUESTION,
    USAGE,
    WHOLE,
    Provider,
    chunk,
    failure,
    kind_of,
    read,
)
from windlass.shared.errors import TaskError
from windlass.shared.providers.base import Finished
from windlass.shared.providers.http.addresses import Allowances
from windlass.shared.providers.http.network import open_client
from windlass.shared.providers.openrouter import Adapter as OpenRouter

# What is asked, and what is answered


def test_text_comes_in_pieces_and_the_cost_at_the_end() -> None:
    assert read(Provider(WHOLE)) == ["A wind", "lass hauls.", FINISHED]


def test_the_request_is_the_documented_one() -> None:
    provider = Provider(WHOLE)
    read(provider)
    ((head, body),) = provider.heard
    assert head.startswith("POST /api/v1/chat/completions HTTP/1.1\r\n")
    assert f"authorization: bearer {KEY}\r\n" in head.lower()
    assert body == {"model": MODEL, "messages": list(QUESTION), "stream": True, "usage": {"include": True}}


def test_bytes_may_be_cut_anywhere_and_lines_may_end_in_any_way() -> None:
    answer = b"".join([COMMENT, chunk("Zwölf "), chunk("风车。"), chunk(finish="stop", usage=USAGE), END])
    for line_end in (b"\n", b"\r\n", b"\r"):
        single = tuple(bytes([byte]) for byte in answer.replace(b"\n", line_end))
        assert read(Provider(single)) == ["Zwölf ", "风车。", FINISHED]


def test_an_answer_that_is_not_streamed_is_read_all_the_same() -> None:
    document = {
        "id": "gen-1731-abc",
        "model": "vendor/name-0901",
        "object": "chat.completion",
        "created": 1731751200,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "A windlass hauls."},
                "finish_reason": "stop",
                "native_finish_reason": "end_turn",
            }
        ],
        "usage": USAGE,
    }
    whole = Provider((json.dumps(document).encode(),), content_type="application/json; charset=utf-8")
    assert read(whole) == ["A windlass hauls.", FINISHED]


def test_an_answer_at_its_length_limit_says_so() -> None:
    *_, end = read(Provider((chunk("A wind"), chunk(finish="length", usage=USAGE), END)))
    assert isinstance(end, Finished)
    assert end.is_cut_short
    assert not FINISHED.is_cut_short


def test_a_provider_that_counts_no_tokens_is_believed_when_it_says_that_it_is_done() -> None:
    assert read(Provider((chunk("All."), chunk(finish="stop"), END))) == [
        "All.", Finished("vendor/name-0901", "stop", "gen-1731-abc"),
    ]  # fmt: skip


def test_nobody_waits_for_a_connection_that_stays_open_after_the_end() -> None:
    provider = Provider((*WHOLE, 60.0))
    assert read(provider, silence_seconds=240)[-1] == FINISHED
    assert provider.left.is_set(), "we hung up first"


def test_a_connection_that_breaks_after_the_last_word_has_lost_nothing() -> None:
    assert read(Provider((chunk("All."), chunk(finish="stop", usage=USAGE), None)))[-1] == FINISHED


@pytest.mark.parametrize(
    "piece",
    [chunk("x" * 60_000), COMMENT * 3000, b"data: " + b"x" * 60_000],
    ids=["text", "signs-of-life", "one-line"],
)
def test_a_stream_without_end_is_cut_off(piece: bytes) -> None:
    error = failure(Provider((piece,) * 600))
    assert kind_of(error) == "ResultTooLarge"
    assert "openrouter sent a" in error.message


def test_a_compressed_answer_is_not_unpacked() -> None:
    packed = gzip.compress(b"".join(each for each in WHOLE))
    assert kind_of(failure(Provider((packed,), headers="Content-Encoding: gzip\r\n"))) == "NetworkTimeout"


# Streams that do not come to their end


@pytest.mark.parametrize(
    "answer",
    [
        (COMMENT, chunk("A wind")),
        (chunk("A wind"), chunk(finish="stop")),
        (chunk("A wind"), END),
        (chunk("A wind"), chunk(choices=[], usage=USAGE)),
        (chunk("A wind"), chunk(" and more")[:-30]),
        (),
    ],
    ids=["no end", "no usage and no [DONE]", "no finish_reason", "usage alone", "in the middle of a chunk", "empty"],
)
def test_a_stream_that_is_cut_off_is_no_answer(answer: tuple[bytes, ...]) -> None:
    error = failure(Provider(answer))
    assert (kind_of(error), error.kind) == ("NetworkTimeout", "transient")


def test_a_connection_that_breaks_in_the_middle_is_a_network_fault() -> None:
    error = failure(Provider((chunk("A wind"), None)))
    assert kind_of(error) == "NetworkTimeout"
    assert "lost the connection" in str(error)


def test_silence_is_a_network_fault() -> None:
    error = failure(Provider((chunk("A wind"), 60.0)), silence_seconds=2)
    assert kind_of(error) == "NetworkTimeout"
    assert "did not answer in time" in str(error)


def test_comment_lines_are_signs_of_life() -> None:
    patient = (*(piece for _ in range(12) for piece in (COMMENT, 0.35)), *WHOLE)
    assert read(Provider(patient), silence_seconds=4)[-1] == FINISHED


def test_nobody_listening_is_a_network_fault() -> None:
    async def to_a_closed_port() -> None:
        async with Provider(()).reached(silence_seconds=60) as openrouter:
            pass
        async with open_client(Allowances(origins=frozenset({_origin(openrouter)})), timeout_seconds=60) as http:
            again = OpenRouter("openrouter", openrouter._endpoint, http)
            async for _ in again.stream_chat(QUESTION, model=MODEL):
                pass

    with pytest.raises(TaskError) as caught:
        asyncio.run(to_a_closed_port())
    assert kind_of(caught.value) == "NetworkTimeout"
    assert "could not be reached" in str(caught.value)


def _origin(openrouter: OpenRouter) -> tuple[str, int]:
    host, _, port = openrouter._endpoint.base_url.split("/")[2].partition(":")
    return host, int(port)


def test_who_stops_reading_closes_the_connection() -> None:
    async def the_first_words(provider: Provider) -> None:
        async with (
            provider.reached(silence_seconds=60) as openrouter,
            aclosing(openrouter.stream_chat(QUESTION, model=MODEL)) as stream,
        ):
            assert await anext(stream) == "A wind"
            await stream.aclose()
            await asyncio.wait_for(provider.left.wait(), 50)

    asyncio.run(the_first_words(Provider((chunk("A wind"), 60.0))))


def test_who_is_cancelled_closes_the_connection() -> None:
    async def cancelled(provider: Provider) -> None:
        async with provider.reached(silence_seconds=60) as openrouter:
            started = asyncio.Event()

            async def listen() -> None:
                async for _ in openrouter.stream_chat(QUESTION, model=MODEL):
                    started.set()

            listening = asyncio.create_task(listen())
            await started.wait()
            listening.cancel()
            await asyncio.wait([listening])
            await asyncio.wait_for(provider.left.wait(), 50)

    asyncio.run(cancelled(Provider((chunk("A wind"), 60.0))))

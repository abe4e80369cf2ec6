"""OpenRouter's streams as its documentation shows them, byte for byte, and everything that can befall them."""

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from shared.errors import TaskError
from shared.providers.addresses import Allowances
from shared.providers.network import open_client
from shared.providers.openrouter import Finished, OpenRouter
from shared.toml_tables import Endpoint

KEY = "a-key-that-looks-like-any-other-word"
MODEL = "vendor/name"
QUESTION = ({"role": "user", "content": "What is it about?"},)

COMMENT = b": OPENROUTER PROCESSING\n\n"
END = b"data: [DONE]\n\n"
USAGE = {"prompt_tokens": 12, "completion_tokens": 8, "total_tokens": 20, "cost": 0.00014}


def chunk(content: str | None = None, *, finish: str | None = None, **more: Any) -> bytes:
    document = {
        "id": "gen-1731-abc",
        "provider": "Vendor",
        "model": "vendor/name-0901",
        "object": "chat.completion.chunk",
        "created": 1731751200,
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": content}, "finish_reason": finish}],
        **more,
    }
    return b"data: " + json.dumps(document, ensure_ascii=False).encode() + b"\n\n"


WHOLE = (
    COMMENT, chunk(""), chunk("A wind"), COMMENT, chunk("lass hauls."), chunk("", finish="stop"),
    chunk(choices=[], usage=USAGE), END,
)  # fmt: skip
FINISHED = Finished("vendor/name-0901", "stop", "gen-1731-abc", 12, 8, 0.00014)


@dataclass
class Provider:
    """Answers each request with the same bytes, and the pauses between them; `None` breaks the connection."""

    answer: tuple[bytes | float | None, ...]
    status: str = "200 OK"
    content_type: str = "text/event-stream"
    headers: str = ""
    heard: list[tuple[str, Any]] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    served: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await self._answer(reader, writer)
            await writer.wait_closed()
        self.served.set()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(int(line.split(":")[1]) for line in head.lower().splitlines() if "content-length" in line)
        self.heard.append((head, json.loads(await reader.readexactly(length))))
        writer.write(f"HTTP/1.1 {self.status}\r\nContent-Type: {self.content_type}\r\n{self.headers}\r\n".encode())
        for piece in self.answer:
            if isinstance(piece, bytes):
                writer.write(piece)
                await writer.drain()
            elif piece is None:
                # Closed so, the kernel sends a reset: the end of the stream could be taken for its proper end.
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            else:
                await self._watch(reader, piece)
        writer.close()

    async def _watch(self, reader: asyncio.StreamReader, seconds: float) -> None:
        with suppress(TimeoutError):
            if await asyncio.wait_for(reader.read(), seconds) == b"":
                self.left.set()

    @asynccontextmanager
    async def reached(self, *, silence_seconds: float) -> AsyncIterator[OpenRouter]:
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        async with (
            server,
            open_client(Allowances(origins=frozenset({(host, port)})), timeout_seconds=silence_seconds) as http,
        ):
            try:
                yield OpenRouter("openrouter", Endpoint(f"http://{host}:{port}/api/v1", KEY), http)
            finally:
                if self.heard:
                    await self.served.wait()


def read(provider: Provider, *, silence_seconds: float = 5) -> list[str | Finished]:
    async def all_of_it() -> list[str | Finished]:
        async with provider.reached(silence_seconds=silence_seconds) as openrouter:
            return [piece async for piece in openrouter.stream_chat(QUESTION, model=MODEL)]

    return asyncio.run(all_of_it())


def failure(provider: Provider, **options: Any) -> TaskError:
    with pytest.raises(TaskError) as caught:
        read(provider, **options)
    return caught.value


def kind_of(error: TaskError) -> str:
    return type(error).__name__


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
    provider = Provider((*WHOLE, 3.0))
    assert read(provider, silence_seconds=60)[-1] == FINISHED
    assert provider.left.is_set(), "we hung up first"


def test_a_connection_that_breaks_after_the_last_word_has_lost_nothing() -> None:
    assert read(Provider((chunk("All."), chunk(finish="stop", usage=USAGE), None)))[-1] == FINISHED


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
    error = failure(Provider((chunk("A wind"), 60.0)), silence_seconds=0.2)
    assert kind_of(error) == "NetworkTimeout"
    assert "did not answer in time" in str(error)


def test_comment_lines_are_signs_of_life() -> None:
    patient = (*(piece for _ in range(8) for piece in (COMMENT, 0.1)), *WHOLE)
    assert read(Provider(patient), silence_seconds=0.5)[-1] == FINISHED


def test_nobody_listening_is_a_network_fault() -> None:
    async def to_a_closed_port() -> None:
        async with Provider(()).reached(silence_seconds=5) as openrouter:
            pass
        async with open_client(Allowances(origins=frozenset({_origin(openrouter)})), timeout_seconds=5) as http:
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
            provider.reached(silence_seconds=5) as openrouter,
            aclosing(openrouter.stream_chat(QUESTION, model=MODEL)) as stream,
        ):
            assert await anext(stream) == "A wind"
            await stream.aclose()
            await asyncio.wait_for(provider.left.wait(), 5)

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
            await asyncio.wait_for(provider.left.wait(), 5)

    asyncio.run(cancelled(Provider((chunk("A wind"), 60.0))))


# Errors, before the first word and after it

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

"""An OpenRouter that answers what a test has written down for it."""

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from windlass.shared.errors import TaskError
from windlass.shared.providers.base import Finished
from windlass.shared.providers.http.addresses import Allowances
from windlass.shared.providers.http.network import open_client
from windlass.shared.providers.openrouter import Adapter as OpenRouter
from windlass.shared.toml_tables import Endpoint

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


def read(provider: Provider, *, silence_seconds: float = 60) -> list[str | Finished]:
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

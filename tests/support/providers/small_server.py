"""A real HTTP server on a loopback address that says byte for byte what a test wants, right or wrong."""

import asyncio
import functools
import json
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

HANG = object()
"""An answer that never comes: the connection stays open until the other side leaves."""

Reply = bytes | Sequence[Any] | None | object


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class SmallServer:
    host: str
    port: int
    scheme: str = "http"
    requests: list[Request] = field(default_factory=list)
    connections: int = 0

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"


@asynccontextmanager
async def serving(
    reply: Callable[[Request], Reply], *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[SmallServer]:
    """`reply` answers with bytes or with none, which drops the connection; or with a sequence of such parts, seconds
    of silence among them, or `HANG`."""

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        try:
            stays = True
            while stays and (request := await _read(reader)) is not None:
                server.requests.append(request)
                said = reply(request)
                await _write(writer, reader, said)
                stays = isinstance(said, bytes) and b"Connection: keep-alive" in said
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def admit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        meetings[writer] = asyncio.ensure_future(meet(reader, writer))

    meetings: dict[asyncio.StreamWriter, asyncio.Future[None]] = {}
    listening = await asyncio.start_server(admit, host, port, ssl=tls)
    server = SmallServer(host, listening.sockets[0].getsockname()[1], "https" if tls else "http")
    try:
        async with listening:
            yield server
    finally:
        for writer, meeting in meetings.items():
            meeting.cancel()
            writer.transport.abort()
            with suppress(ConnectionError):
                await writer.wait_closed()
        await asyncio.gather(*meetings.values(), return_exceptions=True)


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    method, path, _ = first.split(" ")
    return Request(method, path, headers, await reader.readexactly(int(headers.get("content-length", 0))))


async def _write(writer: asyncio.StreamWriter, reader: asyncio.StreamReader, reply: Reply) -> None:
    for part in reply if isinstance(reply, list | tuple) else [reply]:
        if part is HANG:
            await reader.read()
        elif isinstance(part, float):
            await asyncio.sleep(part)
        elif isinstance(part, bytes):
            writer.write(part)
            await writer.drain()


def answer(status: int = 200, body: Any = b"", **headers: str) -> bytes:
    """A whole answer; what is not bytes is written as JSON. Header names have underscores for hyphens."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = {"Content-Length": str(len(content)), "Connection": "close"}
    fields |= {name.replace("_", "-").title(): value for name, value in headers.items()}
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


def on_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs an async test."""

    @functools.wraps(test)
    def run(*args: Any, **fixtures: Any) -> None:
        asyncio.run(test(*args, **fixtures))

    return run

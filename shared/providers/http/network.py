"""HTTP clients that lead nowhere private: a name is resolved once, and the address that was judged is connected to."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpcore
import httpx

from windlass.shared import tracing
from windlass.shared.providers.http.addresses import Allowances, check
from windlass.shared.providers.http.resolving import Resolver
from windlass.shared.providers.http.traced_requests import send_traced

Resolve = Callable[[str], Awaitable[list[str]]]

CONNECT_SECONDS = 10.0


@dataclass
class Traffic:
    """Whether anybody was reached: before that, nothing can have been said."""

    has_begun: bool = False


_watched: ContextVar[Traffic | None] = ContextVar("watched", default=None)


@contextmanager
def watching_traffic() -> Iterator[Traffic]:
    """Over the connections that our clients open for whatever runs inside the block."""
    traffic = Traffic()
    token = _watched.set(traffic)
    try:
        yield traffic
    finally:
        _watched.reset(token)


RESOLVER = Resolver()
"""One for the process: its bounds hold for all clients together."""


def open_client(
    allowances: Allowances,
    *,
    timeout_seconds: float,
    resolve: Resolve | None = None,
    tls: ssl.SSLContext | None = None,
    owner: str | None = None,
) -> httpx.AsyncClient:
    """A client without proxies, redirects or keys of its own; whoever opens it closes it.

    A host that may not be spoken to raises `Forbidden`. The timeout is for each step of a request, not for the whole.
    Slow names of one owner, who is a user that may name hosts, do not delay requests for another.
    """
    resolve = resolve or partial(RESOLVER.resolve, owner=owner)
    tls = tls or httpx.create_ssl_context(trust_env=False)
    return httpx.AsyncClient(
        transport=GuardedTransport(GuardedBackend(allowances, resolve), tls),
        mounts={"http://": GuardedTransport(GuardedBackend(allowances, resolve, plain=True), tls)},
        timeout=httpx.Timeout(timeout_seconds, connect=min(timeout_seconds, CONNECT_SECONDS)),
        headers={"User-Agent": "windlass", "Accept-Encoding": "identity"},
        follow_redirects=False,
        trust_env=False,
    )


class GuardedTransport(httpx.AsyncHTTPTransport):
    """httpx's own transport on a network backend of ours, which httpx has no argument for.

    No connection is used twice: a provider that closes an idle one at the moment we send an order over it would leave
    us in doubt about the order, and every request would have to ask again whether the address is still allowed.
    """

    def __init__(self, backend: "GuardedBackend", tls: ssl.SSLContext) -> None:
        super().__init__(verify=tls, trust_env=False)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls, max_connections=None, max_keepalive_connections=0, network_backend=backend
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if tracing.is_on():
            response = await send_traced(super().handle_async_request, request)
        else:
            response = await super().handle_async_request(request)
        # Never unpacked, since we ask for no compression: a few kilobytes could become gigabytes, past every bound.
        response.headers.pop("content-encoding", None)
        return response


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Opens connections to checked addresses. The name stays with httpcore, for the Host header and the certificate."""

    def __init__(self, allowances: Allowances, resolve: Resolve, *, plain: bool = False) -> None:
        self._allowances = allowances
        self._resolve = resolve
        self._plain = plain
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        if not 0 < port < 65536:
            raise httpcore.ConnectError(f"there is no port {port}")
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (CONNECT_SECONDS if timeout is None else timeout)
        addresses = await self._addresses_of(host, deadline)
        check(host, port, addresses, self._allowances, plain=self._plain)
        for tried, address in enumerate(addresses, start=1):
            # Each gets its share of the time, lest one that is not reachable from here use up what the others need.
            share = (deadline - loop.time()) / (len(addresses) - tried + 1)
            try:
                stream = await self._inner.connect_tcp(address, port, max(share, 0.01), local_address, socket_options)
                if (traffic := _watched.get()) is not None:
                    traffic.has_begun = True
                return stream
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if tried == len(addresses):
                    raise
        raise httpcore.ConnectError(f"{host} has no address")

    async def _addresses_of(self, host: str, deadline: float) -> list[str]:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._resolve(host)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"the name {host} was not resolved in time") from error
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"the name {host} cannot be resolved: {error}") from error

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

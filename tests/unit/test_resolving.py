"""The resolver with a name server of the test's own: what is slow, for whom, and what is remembered."""

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from tests.support.providers.small_server import on_a_loop
from windlass.shared.providers.http.resolving import (
    KEPT_SECONDS,
    KEPT_SECONDS_IF_UNKNOWN,
    MOST_KEPT,
    MOST_QUEUED_PER_OWNER,
    MOST_THREADS,
    MOST_THREADS_PER_OWNER,
    Resolver,
)


class NameServer:
    """Never answers for names that begin with `slow`, until it is closed; does not know those that begin with `no`."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._closed = threading.Event()

    def __call__(self, host: str) -> list[str]:
        self.asked.append(host)
        if host.startswith("slow"):
            self._closed.wait()
        if host.startswith("no"):
            raise OSError("Name or service not known")
        return ["192.0.2.1"]

    def close(self) -> None:
        self._closed.set()


@pytest.fixture
def server() -> Iterator[NameServer]:
    server = NameServer()
    yield server
    server.close()


@on_a_loop
async def test_slow_names_of_one_owner_do_not_delay_another(server: NameServer) -> None:
    resolver = Resolver(server, seconds=30)
    names = [f"slow{number}.example" for number in range(MOST_THREADS_PER_OWNER + MOST_QUEUED_PER_OWNER + 1)]
    slow = [asyncio.create_task(resolver.resolve(name, owner="mallory")) for name in names]
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        assert await resolver.resolve("hooks.example", owner="ada") == ["192.0.2.1"]
        assert await resolver.resolve("provider.example") == ["192.0.2.1"]
        with pytest.raises(OSError, match="too many names"):
            await slow.pop()
    assert len(server.asked) <= MOST_THREADS_PER_OWNER + 2
    for each in slow:
        each.cancel()
    await asyncio.gather(*slow, return_exceptions=True)


@on_a_loop
async def test_many_owners_together_take_a_bounded_number_of_threads(server: NameServer) -> None:
    resolver = Resolver(server, seconds=30)
    slow = [asyncio.create_task(resolver.resolve("slow.example", owner=f"user{number}")) for number in range(100)]
    await asyncio.sleep(0)
    assert len(server.asked) <= MOST_THREADS
    server.close()
    async with asyncio.timeout(5):
        assert await asyncio.gather(*slow) == [["192.0.2.1"]] * 100


@on_a_loop
async def test_a_slow_name_ends_in_time_and_occupies_one_thread(server: NameServer) -> None:
    resolver = Resolver(server, seconds=0.05)
    began = time.monotonic()
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await resolver.resolve("slow.example", owner="ada")
    assert time.monotonic() - began < 5
    assert server.asked == ["slow.example"]


@on_a_loop
async def test_an_answer_is_kept_for_moments_also_when_there_is_none(server: NameServer) -> None:
    now = [0.0]
    resolver = Resolver(server, clock=lambda: now[0])

    async def ask() -> None:
        assert await resolver.resolve("hooks.example") == ["192.0.2.1"]
        with pytest.raises(OSError, match="not known"):
            await resolver.resolve("nobody.example")

    await ask()
    await ask()
    assert server.asked == ["hooks.example", "nobody.example"]
    now[0] = KEPT_SECONDS_IF_UNKNOWN
    await ask()
    assert server.asked[2:] == ["nobody.example"]
    now[0] = KEPT_SECONDS
    await ask()
    assert server.asked[3:] == ["hooks.example", "nobody.example"]


@on_a_loop
async def test_no_more_names_are_kept_than_may_be(server: NameServer) -> None:
    resolver = Resolver(server)
    for number in range(MOST_KEPT + 1):
        await resolver.resolve(f"host{number}.example")
    server.asked.clear()
    for number in (MOST_KEPT, 1, 0):
        await resolver.resolve(f"host{number}.example")
    assert server.asked == ["host0.example"]

"""Memory: a search among few and among very many events, and what an end costs more whose task is remembered."""

import asyncio
import os
import statistics
import time

import asyncpg

from bench import vectors
from bench.deployment import new_database
from bench.figures import Figure
from bench.hot_path import HotPath, a_hot_path
from bench.remembered import FEW, MANY, SEARCHES, asked, fill, texts
from tests.support.servers.private_servers import throw_away_servers
from windlass.shared import db
from windlass.shared.concerns import Concern
from windlass.shared.settings import Settings
from windlass.shared.store.memory import searching

ROUNDS = int(os.environ.get("ROUNDS", "60"))
AT_ONCE = int(os.environ.get("AT_ONCE", "1"))
"""Ends in one call: an agent or a summary ends by itself, and not with many others."""
OF_OFF = 1.2
MOST_SECONDS = 0.5
CONCERNS = {"plain": 0, "remembered": int(Concern.MEMORY)}


class Events:
    """A database with so many events, each with its vector, as an api searches it."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._seconds: list[float] = []

    @classmethod
    async def of(cls, database_url: str, number: int) -> "Events":
        await fill(database_url, number)
        return cls(await db.open_reading_pool(Settings(database_url=database_url), "bench", most=1))

    async def measure(self, number: int) -> None:
        question, scope = asked(number)
        began = time.perf_counter()
        found = await searching.search(self._pool, question, scope, limit=10, user_id="bench")
        self._seconds.append(time.perf_counter() - began)
        assert found.hits, question
        assert not found.degraded, question

    @property
    def median(self) -> float:
        return statistics.median(self._seconds)

    @property
    def slowest(self) -> float:
        return max(self._seconds)

    async def close(self) -> None:
        await self._pool.close()


async def searches(urls: dict[int, str]) -> list[Figure]:
    found = []
    for number, url in urls.items():
        events = await Events.of(url, number)
        for each in range(SEARCHES):
            await events.measure(each)
        await events.close()
        found.append(
            Figure(
                f"a search among {number:,} events, by words and vectors",
                f"median {events.median * 1000:.0f} ms, slowest {events.slowest * 1000:.0f} ms of {SEARCHES}",
                f"median <= {MOST_SECONDS * 1000:.0f} ms",
                {"p50_ms": events.median * 1000, "max_ms": events.slowest * 1000},
                reached=events.median <= MOST_SECONDS,
            )
        )
    return found


async def ends(url: str) -> Figure:
    """By turns, so that whatever else the machine does slows down both."""
    await provide(url)
    async with (
        a_hot_path(url, "plain", capacity=AT_ONCE) as off,
        a_hot_path(url, "remembered", capacity=AT_ONCE) as on,
    ):
        spent: dict[str, list[float]] = {"plain": [], "remembered": []}
        for path in (off, on):
            await submit(path, CONCERNS[path.provider])
        for number in range(ROUNDS):
            for path in (off, on):
                costs, _ = await path.round(AT_ONCE)
                if number >= ROUNDS // 10:
                    spent[path.provider].append(costs["end"].cpu_ms / AT_ONCE)
    plain, remembered = (statistics.median(spent[name]) for name in ("plain", "remembered"))
    return Figure(
        f"Postgres' CPU of an end whose task is remembered, {AT_ONCE} to a call",
        f"{remembered:.3f} ms = {remembered / plain:.2f} x one that is not ({plain:.3f} ms)",
        f"<= {OF_OFF:g} x",
        {"on_ms": remembered, "off_ms": plain, "times": remembered / plain},
        reached=remembered <= OF_OFF * plain,
    )


async def submit(path: HotPath, concerns: int) -> None:
    payload = {"prompt": texts()[0] * 8}
    await path.submit(ROUNDS * AT_ONCE, payload=payload, concerns=concerns)


async def provide(url: str) -> None:
    connection = await asyncpg.connect(url)
    for name in CONCERNS:
        await connection.execute("INSERT INTO providers (name, actor) VALUES ($1, 'probe')", name)
        queue = f"probe.{name}"
        await connection.execute("INSERT INTO queues (queue, provider, actor) VALUES ($1, $2, 'probe')", queue, name)
    await connection.close()


def figures() -> list[Figure]:
    with throw_away_servers() as servers:
        urls = {number: new_database(servers, f"memory_{number}") for number in (FEW, MANY)}
        found = asyncio.run(searches(urls))
        found.append(asyncio.run(ends(new_database(servers, "memory_ends"))))
    return [*found, *vectors.figures()]

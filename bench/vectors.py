"""A search by pgvector's index beside one that compares vectors one by one, on the same events of the same server."""

import asyncio
import os
import statistics
import time
from dataclasses import dataclass, field
from typing import Any

import asyncpg

from bench.figures import Figure
from bench.remembered import FEW, MANY, SEARCHES, asked, fill
from tests.support.servers.pgvector import a_postgres_with_pgvector, programs
from windlass.shared import db
from windlass.shared.hashing import hashed
from windlass.shared.migrations.runner import migrate
from windlass.shared.settings import Settings
from windlass.shared.store.functions import named
from windlass.shared.store.memory import indexing, models, searching
from windlass.shared.store.memory.searching import MOST_FOUND, Scope
from windlass.shared.store.rows import EmbeddingModelRow

NEAREST = 10
RECALLED = int(os.environ.get("RECALLED", "20"))
LEAST_RECALL = 0.9
ONE_BY_ONE, BY_INDEX = 10**9, 0
"""Up to how many events are compared."""

BY_EACH = """
SELECT -(v.vector::vector(256) <#> $1::real[]::vector(256)) AS likeness
FROM embeddings v JOIN agent_events e USING (event_id)
WHERE v.model_id = $2 AND ($3::text IS NULL OR e.user_id = $3) ORDER BY 1 DESC LIMIT $4
"""
FOUND = """
SELECT -(v.vector::vector(256) <#> $1::real[]::vector(256)) AS likeness
FROM {nearest}($2, $1, $5, $3, NULL, NULL, NULL) AS n JOIN embeddings v ON v.event_id = n.event_id AND v.model_id = $2
ORDER BY 1 DESC LIMIT $4
"""


@dataclass
class Searches:
    """The same questions both ways, by turns."""

    pool: db.Pool
    model: EmbeddingModelRow
    seconds: dict[int, list[float]] = field(default_factory=lambda: {ONE_BY_ONE: [], BY_INDEX: []})

    async def measure(self, number: int) -> None:
        question, scope = asked(number)
        vector = hashed(question)
        for way, seconds in self.seconds.items():
            began = time.perf_counter()
            found = await searching.search_by(self.pool, question, scope, self.model, vector, limit=10, compared=way)
            seconds.append(time.perf_counter() - began)
            assert found.hits, question

    async def recall(self, number: int) -> float:
        """How many of the nearest the index has found, or others that are as near."""
        question, scope = asked(number)
        each = await self._likenesses(BY_EACH, question, scope)
        found = await self._likenesses(FOUND.format(nearest=named("nearest_events")), question, scope, MOST_FOUND)
        return sum(likeness >= each[-1] - 1e-5 for likeness in found) / len(each)

    async def _likenesses(self, query: str, question: str, scope: Scope, *others: Any) -> list[float]:
        values = (hashed(question), self.model.model_id, scope.owner, NEAREST, *others)
        return [row["likeness"] for row in await self.pool.fetch(query, *values)]

    def median(self, way: int) -> float:
        return statistics.median(self.seconds[way]) * 1000


async def make_index(url: str) -> float:
    """As the janitor does, also where there are so few events that it would not."""
    connection = await asyncpg.connect(url)
    (row,) = await connection.fetch(f"SELECT * FROM {named('vector_indexes')}()")
    wanted = {name: str(row[name]) for name in ("model_id", "name", "kept_as", "place")}
    began = time.perf_counter()
    await indexing.make(connection, **wanted)
    await connection.close()
    return time.perf_counter() - began


async def a_figure(url: str, number: int) -> Figure:
    await migrate(url)
    await fill(url, number)
    made_seconds = await make_index(url)
    pool = await db.open_reading_pool(Settings(database_url=url), "bench", most=1)
    model = await models.active(pool)
    assert model is not None
    searches = Searches(pool, model)
    for each in range(SEARCHES):
        await searches.measure(each)
    recall = statistics.mean([await searches.recall(each) for each in range(RECALLED)])
    await pool.close()
    indexed, compared = searches.median(BY_INDEX), searches.median(ONE_BY_ONE)
    return Figure(
        f"a search among {number:,} events by pgvector's index",
        f"median {indexed:.0f} ms = {indexed / compared:.2f} x one by one ({compared:.0f} ms, of the newest 2,000); "
        f"{recall * 100:.0f} % of the {NEAREST} nearest found; the index was made in {made_seconds:.0f} s",
        f"<= 1 x, >= {LEAST_RECALL * 100:.0f} % found" if number == MANY else "among so few it is not used",
        {"indexed_ms": indexed, "compared_ms": compared, "recall": recall, "made_seconds": made_seconds},
        reached=indexed <= compared and recall >= LEAST_RECALL if number == MANY else None,
    )


async def measure() -> list[Figure]:
    found = []
    async with a_postgres_with_pgvector() as server:
        for number in (FEW, MANY):
            connection = await asyncpg.connect(server)
            await connection.execute(f"CREATE DATABASE vectors_{number}")
            await connection.close()
            found.append(await a_figure(f"{server.rsplit('/', 1)[0]}/vectors_{number}", number))
    return found


def figures() -> list[Figure]:
    """None where there is no such server."""
    return asyncio.run(measure()) if programs() else []

"""A long history stays where it is: new tasks do not go into the gaps between old ones."""

import asyncio

from bench.long_history import fill
from tests.support.engine.store import an_engine

FINISHED = 2000
NEW = 100

PAGES = "SELECT DISTINCT (ctid::text::point)[0]::int AS page FROM tasks WHERE completed_at IS NULL"


def test_new_tasks_leave_the_pages_of_history_alone(database_url: str) -> None:
    """Else every submit reads and dirties another cold page, which goes whole into the write-ahead log."""

    async def submit_after_a_long_history() -> None:
        await fill(database_url, FINISHED, live=0, with_events=False)
        async with an_engine(database_url) as engine:
            last = await engine.pool.fetchval("SELECT pg_relation_size('tasks') / 8192 - 1")
            await engine.submit_many(NEW)
            pages = {row["page"] for row in await engine.pool.fetch(PAGES)}
        assert min(pages) >= last, f"new tasks are in pages {sorted(pages)}, history ended in page {last}"

    asyncio.run(submit_after_a_long_history())

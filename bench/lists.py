"""What a page of a list and `/queues/status` cost with a long history, as a ratio to the same with a short one."""

import asyncio
import os
import re
import statistics
import time
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg

from bench.deployment import new_database
from bench.figures import Figure
from bench.long_history import fill
from tests.support.servers.private_servers import throw_away_servers
from windlass.shared import db
from windlass.shared.filters import Filter
from windlass.shared.settings import Settings
from windlass.shared.states import Lane, State
from windlass.shared.store.operating import queues
from windlass.shared.store.reading import listing
from windlass.shared.store.reading.by_queue import queues_of
from windlass.shared.store.reading.listing import Selection

SHORT = int(os.environ.get("SHORT", "10000"))
LONG = int(os.environ.get("LONG", "500000"))
REPEATS = 25
PAGE = 51
A_DAY_AGO = datetime.now(UTC) - timedelta(days=1)
THREE_DAYS_AGO = datetime.now(UTC) - timedelta(days=3)
PARENT = UUID("01890000-0000-7000-8000-000000000000")

STATUSES: dict[str, str | None] = {"/queues/status": None, "/queues/status of a user": "user-0"}
DEEP = {
    "completed, deep in the history": Filter(status=[State.COMPLETED]),
    "a user's, deep in the history": Filter(user_id="user-0"),
}
PAGES: dict[str, Filter] = {
    "everything": Filter(),
    "completed": Filter(status=[State.COMPLETED]),
    "dead": Filter(status=[State.DEAD]),
    "dead or cancelled": Filter(status=[State.DEAD, State.CANCELLED]),
    "queued": Filter(status=[State.QUEUED]),
    "actor": Filter(actor="agent"),
    "actor nobody used": Filter(actor="embed"),
    "provider": Filter(provider="leonardo"),
    "retry lane": Filter(lane=Lane.RETRY),
    "busy user": Filter(user_id="user-0"),
    "rare user": Filter(user_id="user-39"),
    "unknown user": Filter(user_id="nobody"),
    "common tag": Filter(tag=["nightly"]),
    "rare tag": Filter(tag=["customer-77"]),
    "tag of twenty tasks": Filter(tag=["launch"]),
    "two tags": Filter(tag=["nightly", "customer-77"]),
    "project": Filter(project_id="project-17"),
    "workflow": Filter(workflow_id="workflow-500"),
    "parent": Filter(parent_task_id=PARENT),
    "error type": Filter(error_type="NetworkTimeout"),
    "created in the last day": Filter(created_after=A_DAY_AGO),
    "created before the last day": Filter(created_before=A_DAY_AGO),
    "updated in the last day": Filter(updated_after=A_DAY_AGO),
    "q, a common word": Filter(q="forest"),
    "q, one in a thousand": Filter(q="heliotrope"),
    "q, twenty tasks": Filter(q="zeppelin"),
    "q, nowhere": Filter(q="xylophone"),
    "q, in error messages": Filter(q="was rejected"),
    "dead of a user": Filter(status=[State.DEAD], user_id="user-3"),
    "provider of a user": Filter(provider="local", user_id="user-5"),
    "tag of a user": Filter(tag=["nightly"], user_id="user-7"),
    "project and provider": Filter(project_id="project-17", provider="leonardo"),
    "error type and provider": Filter(error_type="NetworkTimeout", provider="local"),
    "q of a user": Filter(q="winter", user_id="user-9"),
    "q, nowhere, of a user": Filter(q="xylophone", user_id="user-0"),
    "updated lately, of a user": Filter(updated_after=A_DAY_AGO, user_id="user-2"),
    "dead, created in three days": Filter(status=[State.DEAD], created_after=THREE_DAYS_AGO),
}


class History:
    """A database with so many finished tasks, and the pools that an api reads it with."""

    def __init__(self, lists: asyncpg.Pool, pool: asyncpg.Pool, middle: UUID) -> None:
        self.lists = lists
        self.pool = pool
        self.middle = middle
        self.seconds: dict[str, list[float]] = defaultdict(list)

    @classmethod
    async def of(cls, database_url: str, tasks: int) -> "History":
        await fill(database_url, tasks, with_events=False)
        settings = Settings(database_url=database_url)
        lists = await db.open_reading_pool(settings, "bench", most=1)
        pool = await db.open_pool(settings, "bench", most=1)
        await queues.fold_tallies(pool)
        middle = await lists.fetchval("SELECT task_id FROM tasks ORDER BY task_id OFFSET $1 LIMIT 1", tasks // 2)
        return cls(lists, pool, middle)

    async def ask(self, name: str) -> Any:
        if name in STATUSES:
            return await queues.status(self.pool, user_id=STATUSES[name], heard_within_seconds=30)
        if name in DEEP:
            return await listing.newest(self.lists, DEEP[name], before=self.middle, limit=PAGE)
        return await listing.newest(self.lists, PAGES[name], limit=PAGE)

    async def measure(self, name: str) -> None:
        started = time.perf_counter()
        await self.ask(name)
        self.seconds[name].append(time.perf_counter() - started)

    def median(self, name: str) -> float:
        return statistics.median(self.seconds[name])

    async def plan(self, name: str) -> str:
        """The plan's first line, and the indexes that it goes by."""
        if name in STATUSES:
            return "the living looked through, the ended counted already"
        wanted = PAGES.get(name) or DEEP[name]
        its_queues = await queues_of(self.lists, wanted)
        selection = Selection(wanted, queues=its_queues, believes_tallies=True)
        statement = selection.page(listing.columns_of_a_list(full=False), order="DESC", limit=PAGE)
        lines = [row[0].strip() for row in await self.lists.fetch(f"EXPLAIN {statement}", *selection.values)]
        indexes = dict.fromkeys(
            found[1] for line in lines if (found := re.search(r"(?:using|Scan on) (tasks_\w+)", line))
        )
        return f"{lines[0]} by {', '.join(indexes)}"

    async def close(self) -> None:
        await self.lists.close()
        await self.pool.close()


async def compare(urls: dict[int, str]) -> list[Figure]:
    short, long = [await History.of(url, tasks) for tasks, url in urls.items()]
    names = [*PAGES, *DEEP, *STATUSES]
    for name in names:
        for _ in range(REPEATS):  # by turns, so that whatever else the machine does slows down both
            await short.measure(name)
            await long.measure(name)
    ratios = {name: long.median(name) / short.median(name) for name in names}
    found = [
        Figure(
            name,
            f"{long.median(name) * 1000:.2f} ms = {ratios[name]:.2f} x; {await long.plan(name)}",
            f"<= 2 x the same with {SHORT:,}",
            {"ms": long.median(name) * 1000, "short_ms": short.median(name) * 1000, "ratio": ratios[name]},
            reached=ratios[name] <= 2,
        )
        for name in sorted(names, key=ratios.__getitem__)
    ]
    await short.close()
    await long.close()
    return found


def figures() -> list[Figure]:
    with throw_away_servers() as servers:
        urls = {tasks: new_database(servers, f"history_{tasks}") for tasks in (SHORT, LONG)}
        return asyncio.run(compare(urls))

"""Parents among very many that wait: what their end costs, and how long until all their dependents have been told."""

import time
from collections.abc import Sequence
from uuid import UUID, uuid4

import asyncpg

from bench.figures import Figure
from bench.hot_path import LEASE_SECONDS, WORKER
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.flow_control.flow import Rules
from windlass.shared.store.tasks import Claim, Claimed, Ending, dependencies

DEPENDENTS = 10_000
PARENTS = 64
END_MS = 50.0
SETTLED_SECONDS = 5.0
FAILURE = {"type": "ContentRejected", "kind": "permanent", "message": "no", "details": {}, "attempt": 1}


async def many_small(pool: asyncpg.Pool, settings: Settings) -> list[Figure]:
    """As many parents as go in a call complete: what the call takes, and how long until the last dependent is free."""
    parents = [
        row["parent_id"]
        for row in await pool.fetch("SELECT DISTINCT parent_id FROM task_dependencies LIMIT $1", PARENTS)
    ]
    children = await pool.fetchval("SELECT count(*) FROM task_dependencies WHERE parent_id = ANY ($1)", parents)
    ended = await _end(pool, settings, parents, "complete")
    pages = await _settle(pool)
    freed = await pool.fetchval(
        """
        SELECT count(*) FROM tasks t
        WHERE t.status = 'queued' AND t.task_id IN (SELECT child_id FROM task_dependencies WHERE parent_id = ANY ($1))
        """,
        parents,
    )
    assert freed == children, (freed, children)
    return of_a_family(f"end of {len(parents)} parents with {children:,} dependents", ended, "all of these free", pages)


async def a_large_one(pool: asyncpg.Pool, settings: Settings) -> list[Figure]:
    """A parent dies: how long its own end takes, and how long until the last of its dependents has been buried."""
    parent = await pool.fetchval(
        "SELECT task_id FROM tasks WHERE status = 'queued' AND available_at < now() ORDER BY task_id DESC LIMIT 1"
    )
    told = await pool.execute(
        """
        INSERT INTO task_dependencies (parent_id, child_id)
        SELECT $1, task_id FROM tasks WHERE status = 'blocked' ORDER BY task_id LIMIT $2
        """,
        parent,
        DEPENDENTS,
    )
    dependents = int(told.rpartition(" ")[2])  # where fewer are blocked, all of them
    ended = await _end(pool, settings, [parent], "bury")
    pages = await _settle(pool)
    buried = await pool.fetchval("SELECT count(*) FROM tasks WHERE status = 'dead'")
    assert buried == dependents + 1, buried
    return of_a_family(f"end of a parent with {dependents:,} dependents", ended, "all of them buried", pages)


def of_a_family(what: str, ended: float, then: str, pages: Sequence[float]) -> list[Figure]:
    milliseconds, seconds, longest = ended * 1000, sum(pages), max(pages) * 1000
    return [
        Figure(
            what, f"{milliseconds:.1f} ms", f"< {END_MS:.0f} ms", {"ms": milliseconds}, reached=milliseconds < END_MS
        ),
        Figure(
            then,
            f"{seconds:.2f} s, the longest page {longest:.0f} ms",
            f"< {SETTLED_SECONDS:g} s",
            {"seconds": seconds, "longest_page_ms": longest},
            reached=seconds < SETTLED_SECONDS,
        ),
    ]


async def _end(pool: asyncpg.Pool, settings: Settings, parents: Sequence[UUID], transition: str) -> float:
    """Seconds of the call that ends them."""
    attempts = await tasks.claim(pool, WORKER, [Claim(parent, uuid4()) for parent in parents], LEASE_SECONDS)
    endings = [
        Ending(
            each.task_id, each.attempt, each.claim_token, transition, error=FAILURE if transition == "bury" else None
        )
        for each in attempts
        if isinstance(each, Claimed)
    ]
    assert len(endings) == len(parents), attempts
    began = time.perf_counter()
    ends = await tasks.end(pool, endings, Rules.of(settings))
    passed = time.perf_counter() - began
    assert set(ends) == {"dead" if transition == "bury" else "completed"}, ends
    return passed


async def _settle(pool: asyncpg.Pool) -> list[float]:
    """The seconds of each page."""
    pages = []
    began = time.perf_counter()
    while await dependencies.settle_next(pool):
        pages.append(time.perf_counter() - began)
        began = time.perf_counter()
    return pages

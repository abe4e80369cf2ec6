"""Short ways to say what happens to a provider's rate: its window, places that are taken, time that passes."""

import asyncio
from collections.abc import Sequence
from uuid import UUID, uuid4

from tests.support.engine.flow import provider
from tests.support.engine.store import Engine
from windlass.shared.store import tasks
from windlass.shared.store.flow_control import rates
from windlass.shared.store.functions import named
from windlass.shared.store.tasks import Claim, Claimed


async def set_rate(engine: Engine, limit: int | None, per_seconds: int = 60, *, name: str = "probe") -> None:
    """As it is configured; no limit is no rate."""
    rate = None if limit is None else {"limit": limit, "per_seconds": per_seconds}
    await engine.sql("UPDATE providers SET configured_rate = $1 WHERE name = $2", rate, name)


async def places_taken(engine: Engine, name: str = "probe") -> int:
    """However long ago, as far as the window remembers."""
    return sum((await provider(engine, name))["rate_counts"])


async def left(engine: Engine, name: str = "probe") -> int | None:
    number: int | None = await engine.pool.fetchval(
        f"SELECT {named('rate_left')}(p, clock_timestamp()) FROM providers p WHERE name = $1", name
    )
    return number


async def let_the_window_pass(engine: Engine, *, seconds: float = 3600 * 2) -> None:
    """Every place was taken so much earlier."""
    await engine.sql(
        """
        UPDATE providers SET rate_moments = ARRAY(
            SELECT at - make_interval(secs => $1) FROM unnest(rate_moments) WITH ORDINALITY AS taken(at, number)
            ORDER BY number)
        """,
        seconds,
    )


async def claim_at_once(engine: Engine, task_ids: Sequence[UUID]) -> list[Claimed]:
    """Each on a connection of its own; those that were granted."""
    answers = await asyncio.gather(*(engine.claim(each) for each in task_ids))
    return [answer for answer in answers if isinstance(answer, Claimed)]


async def claim_together(engine: Engine, task_ids: Sequence[UUID]) -> list[Claimed]:
    """All in one call; those that were granted."""
    claims = [Claim(each, uuid4()) for each in task_ids]
    answers = await tasks.claim(engine.pool, "worker-1", claims, 30)
    return [answer for answer in answers if isinstance(answer, Claimed)]


async def take(engine: Engine) -> bool:
    """One more place for an attempt that runs."""
    return await rates.take(engine.pool, "probe") is None

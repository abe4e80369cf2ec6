"""Short ways to say what providers go through: results, 429s, trials, the passing of time."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from asyncpg import Record as Row

from tests.support.engine.store import RULES, Engine
from windlass.services.actors.worker.ending.retries import ending_of_failure
from windlass.shared.admission import ProviderView
from windlass.shared.errors import InvalidInput, RateLimited, ServiceUnavailable
from windlass.shared.reasons import Reason
from windlass.shared.store import tasks
from windlass.shared.store.flow_control import flow, providers
from windlass.shared.store.operating import workers
from windlass.shared.store.tasks import Claimed, Refused

HEARD_WITHIN = 30


async def provider(engine: Engine, name: str = "probe") -> Row:
    row = await engine.pool.fetchrow("SELECT * FROM providers WHERE name = $1", name)
    assert row is not None
    return row


async def breaker(engine: Engine) -> str:
    return str((await provider(engine))["breaker_state"])


async def provider_story(engine: Engine, name: str = "probe") -> list[str]:
    """What happened to the provider, oldest first."""
    return [row["type"] for row in reversed(await flow.events(engine.pool, name, before=None, limit=100))]


async def fail(engine: Engine, attempt: Claimed, error: BaseException) -> str | None:
    (status,) = await tasks.end(engine.pool, [ending_of_failure(attempt, error)], RULES)
    return status


async def unavailable(engine: Engine, number: int) -> None:
    """So many attempts fail by the provider's own fault."""
    for _ in range(number):
        await fail(engine, await engine.running(), ServiceUnavailable("busy"))


async def succeed(engine: Engine, number: int) -> None:
    for _ in range(number):
        await engine.completed()


async def be_told_429(engine: Engine, attempt: Claimed, *, retry_after: float | None = 60) -> str | None:
    return await fail(engine, attempt, RateLimited("slow down", retry_after=retry_after))


async def open_the_breaker(engine: Engine) -> None:
    await unavailable(engine, 10)
    assert await breaker(engine) == "open"


async def let_the_time_pass(engine: Engine) -> None:
    """Whatever pauses and open breakers wait for is over."""
    await engine.sql(
        """
        UPDATE providers SET
            paused_until = CASE WHEN paused_until > now() THEN now() ELSE paused_until END,
            breaker_until = CASE WHEN breaker_until > now() AND breaker_mode = 'auto' THEN now() ELSE breaker_until END
        """
    )
    await engine.sql("UPDATE tasks SET available_at = now() WHERE status = 'retrying' AND available_at > now()")


async def pause(engine: Engine) -> UUID:
    """One is told 429 and everything waits."""
    attempt = await engine.running()
    assert await be_told_429(engine, attempt) == "retrying"
    return attempt.task_id


async def look(engine: Engine, name: str = "probe") -> ProviderView:
    (view,) = await providers.look(engine.pool, heard_within_seconds=HEARD_WITHIN, only=[name])
    return view


async def serve(engine: Engine, *, queue: str = "probe.probe", capacity: int = 8) -> None:
    """A worker is alive."""
    await workers.register(engine.pool, "worker-1", hostname="h", pid=1, queues=[queue], capacity=capacity)


async def change(engine: Engine, **changes: Any) -> None:
    assert await flow.change(engine.pool, "probe", changes)


async def refusal(engine: Engine) -> Reason:
    """Why one more task may not start."""
    answer = await engine.claim(await engine.submit())
    assert isinstance(answer, Refused), answer
    return answer.reason


VERDICTS: dict[str, Callable[[Engine, Claimed], Any]] = {
    "complete": lambda engine, attempt: engine.finish(attempt),
    "provider-fault": lambda engine, attempt: fail(engine, attempt, ServiceUnavailable("busy")),
    "invalid": lambda engine, attempt: fail(engine, attempt, InvalidInput("no such model")),
    "bug": lambda engine, attempt: fail(engine, attempt, KeyError("choices")),
    "429": be_told_429,
    "interrupt": lambda engine, attempt: engine.finish(attempt, "interrupt"),
}
"""How an attempt can end, as far as it says something about its provider."""


async def cancel_while_running(engine: Engine, attempt: Claimed) -> None:
    await engine.cancel(attempt.task_id)
    assert await fail(engine, attempt, ServiceUnavailable("busy")) == "cancelled"


async def lose_the_worker(engine: Engine, attempt: Claimed) -> None:
    await engine.lapse(attempt.task_id)
    assert len(await tasks.stall(engine.pool)) == 1


VERDICTS |= {"cancelled": cancel_while_running, "worker-lost": lose_the_worker}


async def trial(engine: Engine) -> Claimed:
    """The breaker was open, its time is over, and one task tries."""
    await open_the_breaker(engine)
    await let_the_time_pass(engine)
    attempt = await engine.running()
    assert await breaker(engine) == "half-open"
    return attempt

"""A dispatcher's steps, one by one."""

from uuid import UUID, uuid4

from tests.support.engine.store import Engine
from windlass.services.dispatcher.backlog import RetryBacklog
from windlass.shared.admission import Admission, ProviderView, admit
from windlass.shared.store.flow_control import providers

HEARD_WITHIN = 30
MANY = 5000


async def look(engine: Engine, provider: str = "probe") -> ProviderView:
    views = {view.name: view for view in await providers.look(engine.pool, heard_within_seconds=HEARD_WITHIN)}
    return views[provider]


async def reserve(
    engine: Engine, view: ProviderView, *, fresh: int = 0, retry: int = 0, token: UUID | None = None
) -> list[UUID]:
    rows = await providers.reserve(engine.pool, view, Admission(fresh, retry, view.lane_credit), token or uuid4())
    return [row["task_id"] for row in rows]


async def dispatch(engine: Engine) -> list[UUID]:
    """One round of a dispatcher, up to where it would publish."""
    (view,) = await RetryBacklog().fill_in(engine.pool, [await look(engine)])
    rows = await providers.reserve(engine.pool, view, admit(view), uuid4())
    return [row["task_id"] for row in rows]


async def check_doorbells(engine: Engine) -> list[UUID]:
    rows = await providers.check_doorbells(engine.pool, first_after_seconds=2, at_most_seconds=15)
    return [row["task_id"] for row in rows]


async def seconds_to_next_look(engine: Engine) -> float | None:
    return await providers.seconds_to_next_look(engine.pool, first_check_seconds=2, at_most_seconds=15)


async def have_rung(engine: Engine, task_id: UUID, *, seconds_ago: float) -> None:
    await engine.sql(
        "UPDATE tasks SET doorbell_at = clock_timestamp() - make_interval(secs => $2) WHERE task_id = $1",
        task_id,
        seconds_ago,
    )

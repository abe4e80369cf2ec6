"""A dispatcher's steps, one by one, and what whoever answers its doorbells is given."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from tests.support.engine.store import Engine
from windlass.shared.admission import ProviderView
from windlass.shared.store import tasks
from windlass.shared.store.flow_control import providers
from windlass.shared.store.functions import named
from windlass.shared.store.tasks import Ask, Claimed, Granted

HEARD_WITHIN = 30
MANY = 5000


async def look(engine: Engine, provider: str = "probe") -> ProviderView:
    views = {view.name: view for view in await providers.look(engine.pool, heard_within_seconds=HEARD_WITHIN)}
    return views[provider]


async def queues_of(engine: Engine, provider: str = "probe") -> list[str]:
    """Those that somebody serves, or all of them."""
    (view,) = await providers.look(engine.pool, heard_within_seconds=HEARD_WITHIN, only=[provider])
    return list(view.queues)


async def ask_next(
    engine: Engine,
    number: int = 100,
    *,
    queues: Sequence[str] = ("probe.probe",),
    worker: str = "worker-1",
    connection: Any = None,
) -> Granted:
    """What a worker is given that has so many places for these queues; in the order in which it is next."""
    tokens = [uuid4() for _ in range(number)]
    ask = Ask(dict.fromkeys(queues, number), tokens)
    answer = await tasks.claim_next(connection or engine.pool, worker, ask, 30)
    answer.claimed.sort(key=lambda each: tokens.index(each.claim_token))
    return answer


async def start_next(engine: Engine, number: int = 100, **options: Any) -> list[Claimed]:
    return (await ask_next(engine, number, **options)).claimed


async def would_start(
    engine: Engine, number: int = 100, *, provider: str = "probe", queues: Sequence[str] | None = None
) -> list[UUID]:
    """What would be started next, if somebody had so many places for it; but nothing is, and nothing is parked."""
    wanted = await queues_of(engine, provider) if queues is None else queues
    async with engine.pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        try:
            answer = await ask_next(engine, number, queues=wanted, worker="nobody", connection=connection)
        finally:
            await transaction.rollback()
    return [each.task_id for each in answer.claimed]


class Shares(NamedTuple):
    """How many of each lane start, and the lanes' credit afterwards."""

    credit: int
    fresh: int
    retry: int


async def shared_between_lanes(
    engine: Engine, places: int, fresh_due: int, retry_due: int, share: int = 30, *, credit: int = 0
) -> Shares:
    query = f"SELECT * FROM {named('share_between_lanes')}($1, $2, $3, $4, $5)"
    (row,) = await engine.pool.fetch(query, places, fresh_due, retry_due, share, credit)
    return Shares(*row)


async def seconds_to_next_look(engine: Engine) -> float | None:
    return await providers.seconds_to_next_look(engine.pool)

"""What clients ask for."""

from uuid_utils.compat import uuid7

from tests.support.engine.locks.moves.driven import move
from tests.support.engine.locks.yard import Yard
from windlass.shared.features.projects import bulk as projects
from windlass.shared.filters import Filter
from windlass.shared.holds import Hold
from windlass.shared.store import tasks
from windlass.shared.store.tasks import bulk


@move
async def submit(yard: Yard) -> None:
    """Of children whose parents are moving, named in any order."""
    await yard.submit([yard.a_task(depends_on=yard.some(4)) for _ in range(3)])


@move
async def submit_keyed(yard: Yard) -> None:
    keys = [f"key-{number}" for number in yard.chance.sample(range(6), 4)]
    wanted = [
        yard.a_task(dedupe_key=key, idempotency_key=f"{yard.one()}{key}", body_hash="00", depends_on=[yard.one()])
        for key in keys
    ]
    for row in await tasks.submit_keyed(yard.pool, wanted):
        yard.everybody.add(row.task_id)


@move
async def cancel(yard: Yard) -> None:
    await tasks.cancel(yard.pool, yard.one())


@move
async def hold(yard: Yard) -> None:
    await tasks.hold(yard.pool, yard.some(4), Hold.ENDPOINT)


@move
async def release(yard: Yard) -> None:
    await tasks.release(yard.pool, yard.some(4), Hold.ENDPOINT)


@move
async def revive(yard: Yard) -> None:
    await tasks.revive(yard.pool, yard.one())


async def a_chunk(yard: Yard, action: str) -> None:
    job = await bulk.accept(yard.pool, uuid7(), action, Filter(), matched=8, user_id="ann", scope_user_id=None)
    await projects.advance(yard.pool, job, yard.some())


@move
async def cancel_many(yard: Yard) -> None:
    await a_chunk(yard, "cancel")


@move
async def revive_many(yard: Yard) -> None:
    await a_chunk(yard, "retry")


@move
async def advance_one_job(yard: Yard) -> None:
    """Several janitors find the same job."""
    for job in await bulk.unfinished(yard.pool):
        await projects.advance(yard.pool, job, yard.some(3))
        await bulk.stop(yard.pool, job.bulk_id, reason="that will do")

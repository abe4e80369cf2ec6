"""What dispatchers and janitors do."""

from datetime import UTC, datetime
from uuid import uuid4

from msgspec.structs import replace

from tests.support.engine.keyed import set_key_limit
from tests.support.engine.locks.moves.driven import NERVOUS, at, move
from tests.support.engine.locks.moves.workers import complete
from tests.support.engine.locks.yard import KEY_LIMITS, WORKERS, Yard
from windlass.shared.concerns import Concern
from windlass.shared.features.catching_up import CatchUp
from windlass.shared.features.handling import handle_pending
from windlass.shared.features.memory.subscriber import MEMORY
from windlass.shared.store import outbox, tasks
from windlass.shared.store.flow_control import flow, keys, providers
from windlass.shared.store.memory import events, jobs, models
from windlass.shared.store.operating import queues, statistics, workers
from windlass.shared.store.tasks import dependencies, submission_keys


@move
@at("providers")
async def share_between_lanes(yard: Yard) -> None:
    views = await providers.look(yard.pool, heard_within_seconds=30)
    await providers.share_between_lanes(yard.pool, {view.name: yard.chance.randrange(101) for view in views})


@move
@at("workers")
async def stall(yard: Yard) -> None:
    await tasks.stall(yard.pool, expired_for_seconds=None, dead_workers=[yard.worker()])


@move
async def expire(yard: Yard) -> None:
    await tasks.expire(yard.pool)


@move
async def settle_next(yard: Yard) -> None:
    """Of parents that were left to it, whatever has become of them."""
    left = "INSERT INTO unsettled (parent_id, revived) VALUES ($1, $2)"
    await yard.engine.sql(left, yard.one(), yard.chance.random() < 0.5)
    await dependencies.settle_next(yard.pool)


@move
async def recheck_blocked(yard: Yard) -> None:
    """Of tasks whose count is wrong."""
    await yard.engine.sql("UPDATE tasks SET unmet = unmet + 1 WHERE task_id = $1 AND status = 'blocked'", yard.one())
    await dependencies.recheck(yard.pool)


@move
@at("providers")
async def recheck_keys(yard: Yard) -> None:
    """After a call, of one provider; now and then, of all."""
    await set_key_limit(yard.engine, yard.chance.choice(KEY_LIMITS))
    await keys.recheck(yard.pool, yard.chance.choice([None, yard.provider()]))


@move
@at("providers")
async def claim_and_end(yard: Yard) -> None:
    """Of keys that are full and become free at once."""
    await yard.claim(yard.some())
    await complete(yard)


@move
@at("workers")
async def lose_workers(yard: Yard) -> None:
    await workers.lose_silent(yard.pool, silent_for_seconds=0)
    await workers.mark_lost(yard.pool, yard.chance.sample(WORKERS, 3), reason="seen to die")


@move
@at("providers")
async def judge_windows(yard: Yard) -> None:
    await flow.judge_windows(yard.pool, NERVOUS)
    await flow.forget_results(yard.pool, NERVOUS, at_most=10)


@move
async def count(yard: Yard) -> None:
    await queues.fold_tallies(yard.pool)
    await queues.mend_tallies(yard.pool)
    await statistics.keep_figures(yard.pool, datetime.now(UTC).date())


@move
async def remember(yard: Yard) -> None:
    """Of what has ended of those that are remembered; and a task of a job is ended, cancelled or revived by others."""
    asked = [yard.a_task() for _ in range(2)]
    await yard.submit([replace(each, concerns=each.concerns | Concern.MEMORY) for each in asked])
    fresh = await models.create(
        yard.pool, name=str(uuid4()), provider=yard.provider(), dimensions=8, activate_when_filled=True
    )
    assert fresh is not None
    await models.activate(yard.pool, fresh)
    await jobs.gather(yard.pool, longest_seconds=0.001)
    await jobs.backfill(yard.pool)
    await models.activate_filled(yard.pool)
    for model in await models.every(yard.pool):
        await models.delete(yard.pool, model.model_id)
    for job in await jobs.newest(yard.pool, state=None, before=None, limit=3):
        await tasks.cancel(yard.pool, job.task_id)
        await tasks.revive(yard.pool, job.task_id)
        await events.delete(yard.pool, job.event_ids[0])


@move
async def catch_up(yard: Yard) -> None:
    """A read of memory waits for the orchestrator, and the orchestrator skips what a read is handling."""
    await CatchUp(yard.pool, MEMORY)()
    page = await outbox.walk(yard.pool, after=None, at_most=10)
    if page.keys:
        await handle_pending(yard.pool, MEMORY, [subject for _, subject in page.keys])


@move
async def forget_keys(yard: Yard) -> None:
    await submission_keys.forget_expired(yard.pool)

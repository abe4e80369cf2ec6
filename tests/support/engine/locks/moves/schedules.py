"""What is done to schedules."""

from datetime import timedelta

from tests.support.engine.locks.moves.driven import at, move
from tests.support.engine.locks.yard import Yard
from windlass.shared.features.handling import handle_pending
from windlass.shared.features.schedules import changing, firing
from windlass.shared.features.schedules.subscriber import SCHEDULES
from windlass.shared.schedules.words import Cause
from windlass.shared.store import outbox


@move
@at("schedules")
async def fire_schedules(yard: Yard) -> None:
    """All that is due, as an orchestrator does: at the latest time for which one of them waits."""
    now = await yard.pool.fetchval("SELECT max(next_at) FROM schedules")
    rows = [] if now is None else await firing.due_now(yard.pool, now=now, at_most=20)
    for row in rows:
        await firing.fire(yard.pool, firing.planned(row))


@move
@at("schedules")
async def settle_schedules(yard: Yard) -> None:
    """As the orchestrator does for each subject, and the api before it answers."""
    page = await outbox.walk(yard.pool, after=None, at_most=3, feature=SCHEDULES.name)
    for _, schedule_id in page.keys:
        await handle_pending(yard.pool, SCHEDULES, [schedule_id])
    await firing.settle(yard.pool, yard.schedule().schedule_id)


@move
@at("schedules")
async def change_schedules(yard: Yard) -> None:
    """Or ask for what they start."""
    schedule = yard.schedule()
    row = await schedule.row()
    match yard.chance.randrange(5):
        case 0:
            await changing.pause(yard.pool, schedule.schedule_id, now=row.last_due_at)
        case 1:
            await changing.resume(yard.pool, schedule.schedule_id, now=row.last_due_at)
        case 2:
            await firing.fire_one(yard.pool, row, [row.read_at], Cause.TRIGGER)
        case 3:
            begin = row.last_due_at.replace(minute=0, second=0, microsecond=0)
            await firing.fire_one(yard.pool, row, [begin, begin - timedelta(hours=1)], Cause.BACKFILL)
        case _:
            await yard.revoke_a_key()

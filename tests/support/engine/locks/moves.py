"""What is driven against each other: every intent of the store that locks rows. To add one, write it and mark it."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from uuid import uuid4

from uuid_utils.compat import uuid7

from tests.support.engine.keyed import set_key_limit
from tests.support.engine.locks.yard import KEY_LIMITS, PROVIDERS, WORKERS, Yard
from tests.support.engine.store import A_FAILURE, an_ending
from windlass.shared.admission import admit
from windlass.shared.filters import Filter
from windlass.shared.holds import Hold
from windlass.shared.settings import Settings
from windlass.shared.store import kept_files, orders, tasks
from windlass.shared.store.flow_control import flow, keys, providers, rates
from windlass.shared.store.flow_control.flow import Rules
from windlass.shared.store.kept_files import OwnFile
from windlass.shared.store.operating import queues, statistics, workers
from windlass.shared.store.orders import Intent
from windlass.shared.store.tasks import Report, bulk, children, dependencies, steps, submission_keys

NERVOUS = Rules.of(Settings(breaker_least_results=2))
CONFIGURED = Settings(
    providers={name: {"actor": "probe", "limit": limit} for name, limit in PROVIDERS.items()},
    actors={"probe": {"concurrency": {"key": "/account", "limit": KEY_LIMITS[0]}}},
)

Move = Callable[[Yard], Awaitable[object]]
MOVES: dict[str, Move] = {}
GATES: dict[str, str] = {}
"""At whose rows, beside those of tasks, somebody stands in the way of a move."""


def move(function: Move) -> Move:
    """Drives it against all the others."""
    MOVES[function.__name__] = function
    return function


def at(rows: str) -> Callable[[Move], Move]:
    def gated(function: Move) -> Move:
        GATES[function.__name__] = rows
        return function

    return gated


# Clients


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
    await tasks.hold(yard.pool, yard.some(4), Hold.WORKFLOW)


@move
async def release(yard: Yard) -> None:
    await tasks.release(yard.pool, yard.some(4), Hold.WORKFLOW)


@move
async def revive(yard: Yard) -> None:
    await tasks.revive(yard.pool, yard.one())


async def a_chunk(yard: Yard, action: str) -> None:
    job = await bulk.accept(yard.pool, uuid7(), action, Filter(), matched=8, user_id="ann", scope_user_id=None)
    await bulk.advance(yard.pool, job, yard.some())


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
        await bulk.advance(yard.pool, job, yard.some(3))
        await bulk.stop(yard.pool, job.bulk_id, reason="that will do")


# Workers


@move
@at("providers")
async def claim(yard: Yard) -> None:
    await yard.claim(yard.some())


@move
async def report(yard: Yard) -> None:
    line = {"type": "output", "data": {"text": "…"}}
    await tasks.report(
        yard.pool,
        [
            Report(each.task_id, each.attempt, each.claim_token, yard.chance.randrange(1000), events=[line])
            for each in yard.running()
        ],
    )


@move
async def save_step(yard: Yard) -> None:
    for attempt in yard.running(2):
        await steps.save_step(yard.pool, attempt, f"step-{yard.chance.randrange(3)}", '"kept"', 5)


@move
async def submit_child(yard: Yard) -> None:
    """At a few places, so that some are there already; waiting for others, named in any order."""
    for attempt in yard.running(2):
        wanted = yard.a_task(depends_on=yard.some(3))
        child = await children.submit_child(yard.pool, attempt, f"{yard.chance.randrange(4)}", wanted)
        if child.is_new:
            yard.everybody.add(wanted.task_id)


@move
@at("generations")
async def keep_file(yard: Yard) -> None:
    for attempt in yard.running(2):
        file = OwnFile.of(attempt.task_id, f"{yard.chance.randrange(3)}", 1, "image/png", "png")
        await kept_files.keep_file(yard.pool, attempt, file)


@move
@at("workers")
async def renew(yard: Yard) -> None:
    await workers.renew(yard.pool, yard.worker(), {each.claim_token: each.task_id for each in yard.running()}, 30)


@move
async def complete(yard: Yard) -> None:
    await tasks.end(yard.pool, [an_ending(each, "complete") for each in yard.running()], NERVOUS)


@move
@at("providers")
async def end_badly(yard: Yard) -> None:
    """In every way that is no success, some of them by the providers' fault."""
    endings = [
        an_ending(each, yard.chance.choice(["retry", "bury", "bury", "interrupt"]))
        if yard.chance.random() < 0.5
        else an_ending(each, "retry", rate_limited=yard.chance.random() < 0.5, provider_failed=True, delay_seconds=0)
        for each in yard.running()
    ]
    await tasks.end(yard.pool, endings, NERVOUS)


@move
@at("workers")
async def come_and_go(yard: Yard) -> None:
    worker_id = yard.worker()
    await workers.register(yard.pool, worker_id, hostname="h", pid=1, queues=["probe.narrow"], capacity=8)
    await workers.leave(yard.pool, worker_id, state="stopping", reason="it is told to")


@move
async def intend_order(yard: Yard) -> None:
    for attempt in yard.running(1):
        await yard.order(attempt)


@move
@at("generations")
async def move_order(yard: Yard) -> None:
    """As its owner, or as somebody who looks after what has been left."""
    for attempt, generation_id in yard.orders[-2:]:
        await orders.move(yard.pool, attempt, generation_id, "fetch")
        await orders.move(yard.pool, None, generation_id, "fetch")


@move
@at("generations")
async def hear_callback(yard: Yard) -> None:
    for attempt, generation_id in yard.orders[-2:]:
        await orders.hear(yard.pool, {}, provider=attempt.provider, job_id=str(generation_id))


@move
@at("generations")
async def revive_by_callback(yard: Yard) -> None:
    """Of one that has just died of not knowing what became of its order."""
    generation_id, callback_hash = uuid7(), uuid4().bytes.hex()
    for attempt in yard.running(1):
        if await orders.intend(yard.pool, attempt, Intent(generation_id, "draw", {}, callback_hash)):
            await orders.move(yard.pool, attempt, generation_id, "lose")
            error = {**A_FAILURE, "type": "SubmitUnknown"}
            await tasks.end(yard.pool, [an_ending(attempt, "bury", error=error)], NERVOUS)
            await orders.hear(yard.pool, {}, callback_hash=bytes.fromhex(callback_hash), job_id=str(generation_id))


@move
@at("generations")
async def give_up_orders(yard: Yard) -> None:
    for _, generation_id in yard.orders[-2:]:
        await orders.give_up(yard.pool, generation_id)
    await orders.abandoned(yard.pool, list(PROVIDERS), again_after_seconds=0)


@move
@at("providers")
async def take_a_place_in_a_rate(yard: Yard) -> None:
    name = yard.provider()
    await flow.change(yard.pool, name, {"rate": yard.chance.choice([None, {"limit": 1000, "per_seconds": 1}])})
    await rates.take(yard.pool, name)


@move
async def count_for_a_limiter(yard: Yard) -> None:
    one, other = yard.chance.sample(["one@1", "two@1", "three@1"], 2)
    await rates.move(yard.pool, one, 1, summed=[other], highest=1000, ttl_seconds=0.01)
    await rates.forget_expired(yard.pool)


# Dispatchers


@move
@at("providers")
async def reserve(yard: Yard) -> None:
    for view in await providers.look(yard.pool, heard_within_seconds=30):
        token = uuid4()
        rows = await providers.reserve(yard.pool, view, admit(view), token)
        yard.bells.append((token, [row.task_id for row in rows]))


@move
async def give_back(yard: Yard) -> None:
    await reserve(yard)
    for token, rung in yard.bells[-3:]:
        await providers.give_back(yard.pool, token, yard.chance.sample(rung, len(rung)))


@move
async def check_doorbells(yard: Yard) -> None:
    await providers.check_doorbells(yard.pool, first_after_seconds=0, at_most_seconds=0)


# Janitors


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
async def forget_keys(yard: Yard) -> None:
    await submission_keys.forget_expired(yard.pool)


# Operators


@move
@at("providers")
async def change_provider(yard: Yard) -> None:
    changes: dict[str, object] = yard.chance.choice(
        [{"paused": True}, {"paused": False, "breaker": None}, {"paused": None}]
    )
    await flow.change(yard.pool, yard.provider(), changes)


@move
@at("providers")
async def configure(yard: Yard) -> None:
    """As a process does that starts: it locks all of them, though it changes none."""
    await providers.configure(yard.pool, CONFIGURED)

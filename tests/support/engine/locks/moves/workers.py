"""What workers do."""

from uuid import uuid4

from uuid_utils.compat import uuid7

from tests.support.engine.locks.moves.driven import NERVOUS, at, move
from tests.support.engine.locks.yard import PROVIDERS, Yard
from tests.support.engine.one_order import intend_one
from tests.support.engine.store import A_FAILURE, an_ending
from windlass.shared.store import kept_files, orders, tasks
from windlass.shared.store.flow_control import flow, rates
from windlass.shared.store.kept_files import OwnFile
from windlass.shared.store.operating import workers
from windlass.shared.store.order_steps import Intent, OrderMove, move_each
from windlass.shared.store.tasks import Report, children, steps


@move
@at("providers")
async def claim(yard: Yard) -> None:
    await yard.claim(yard.some())


@move
@at("providers")
async def claim_next(yard: Yard) -> None:
    yard.attempts += (await tasks.claim_next(yard.pool, yard.worker(), yard.an_ask(), 30)).claimed


@move
@at("providers")
async def end_and_next(yard: Yard) -> None:
    """Some of them in other ways than they would like."""
    endings = [an_ending(each, yard.chance.choice(["complete", "complete", "retry"])) for each in yard.running()]
    _, answer = await tasks.end_and_next(yard.pool, endings, NERVOUS, yard.worker(), yard.an_ask(), 30)
    yard.attempts += answer.claimed


@move
@at("workers")
async def recall(yard: Yard) -> None:
    tokens = [each.claim_token for each in yard.running()]
    await tasks.recall(yard.pool, yard.worker(), tokens, 30, epoch=0)


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
async def move_orders(yard: Yard) -> None:
    """Of many attempts at once, in any order."""
    await move_each(yard.pool, [OrderMove(*each, "fetch") for each in reversed(yard.orders)])


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
        if await intend_one(yard.pool, attempt, Intent(generation_id, "draw", {}, callback_hash)):
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

"""What is done to endpoints, and to what is delivered to them."""

from uuid import uuid4

from tests.support.engine.locks.moves.driven import NERVOUS, at, move
from tests.support.engine.locks.yard import Yard
from tests.support.engine.store import an_ending
from tests.support.engine.webhooks import answered
from windlass.shared.features.handling import handle_pending
from windlass.shared.features.webhooks import checks, endpoints
from windlass.shared.features.webhooks.fan_out import WEBHOOKS
from windlass.shared.features.webhooks.turn import DELIVERIES
from windlass.shared.store import outbox, tasks
from windlass.shared.store.tasks import Claim, Claimed


@move
@at("webhooks")
async def deliver(yard: Yard) -> None:
    """To both endpoints, which answer as they like, in one call."""
    waiting = [each for hook in yard.hooks for each in await hook.deliveries() if each.shown_state == "waiting"]
    yard.chance.shuffle(waiting)
    claims = [Claim(each.task_id, uuid4()) for each in waiting[:4]]
    attempts = [each for each in await tasks.claim(yard.pool, yard.worker(), claims, 30) if isinstance(each, Claimed)]
    endings = []
    for attempt in attempts:
        transition, fields = await answered(yard.engine, attempt, yard.chance.choice([200, 500, 500, 500, 410]))
        endings.append(an_ending(attempt, transition, **fields))
    await tasks.end(yard.pool, endings, NERVOUS)


@move
@at("webhooks")
async def hand_out(yard: Yard) -> None:
    """As the orchestrator does: some moves become deliveries, some outcomes reach their endpoints."""
    for feature in (WEBHOOKS, DELIVERIES):
        page = await outbox.walk(yard.pool, after=None, at_most=5, feature=feature.name)
        for _, subject in page.keys:
            await handle_pending(yard.pool, feature, [subject])


@move
@at("webhooks")
async def change_endpoint(yard: Yard) -> None:
    """By its owner, or by a janitor."""
    webhook_id, deliveries = (hook := yard.hook()).webhook_id, await hook.deliveries()
    match yard.chance.randrange(7):
        case 0:
            await endpoints.disable(yard.pool, webhook_id)
        case 1:
            await endpoints.enable(yard.pool, webhook_id, replay=yard.chance.random() < 0.5)
        case 2:
            await endpoints.test(yard.pool, webhook_id)
        case 3 if deliveries:
            await endpoints.redeliver(yard.pool, yard.chance.choice(deliveries).delivery_id)
        case 4:
            await checks.probe(yard.pool)
        case 5:
            await yard.revoke_a_key()
        case _:
            await checks.check(yard.pool, held_most=10_000, held_days=30)

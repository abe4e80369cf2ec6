"""Moves and events reach webhooks through the outbox. None is lost by a subscription, an upgrade or a crash."""

import asyncio
import json
from dataclasses import replace
from importlib import import_module
from uuid import uuid4

from tests.support.engine.outbox import relays
from tests.support.engine.store import Engine, on_the_engine, until
from tests.support.engine.webhooks import Endpoint, answered, by_name, ready, told_of, until_one_waits
from windlass.shared.features.handling import handle_pending
from windlass.shared.features.transactions import transaction
from windlass.shared.features.webhooks import carrying, checks, endpoints, listening
from windlass.shared.features.webhooks.carrying import Try
from windlass.shared.features.webhooks.fan_out import WEBHOOKS
from windlass.shared.features.webhooks.turn import DELIVERIES
from windlass.shared.store.workflows import approvals
from windlass.shared.store.workflows.approvals import Decision

MIGRATION = import_module("windlass.shared.migrations.versions.0032_webhooks_in_python")


async def rows(engine: Engine, feature: str = "webhook") -> list[tuple[str, str | None]]:
    query = "SELECT move, status FROM outbox WHERE feature = $1 ORDER BY id"
    return [tuple(row) for row in await engine.pool.fetch(query, feature)]


@on_the_engine
async def test_without_a_subscription_no_move_writes_a_row(engine: Engine) -> None:
    await ready(engine)
    await Endpoint.made(engine)
    await engine.completed(**told_of())
    assert await rows(engine) == []
    await engine.completed(**told_of(**by_name()))
    assert await rows(engine) == [("complete", "completed")], "only of a task that names an endpoint"


@on_the_engine
async def test_while_an_endpoint_subscribes_each_move_writes_a_row(engine: Engine) -> None:
    await ready(engine)
    await Endpoint.made(engine, "workflow.*")
    await engine.dead()
    assert await rows(engine) == [], "tasks of probes are left out"
    task_id = await engine.dead(**told_of())
    await engine.revive(task_id)
    await engine.cancel(task_id)
    asking = {**told_of(), "approval": {"message": "publish it?", "expires_in_seconds": 60.0}}
    for decision in (Decision.APPROVED, Decision.REJECTED):
        await approvals.decide(engine.pool, await engine.submit(**asking), decision, by="ann", comment=None)
    assert await rows(engine) == [
        ("bury", "dead"), ("revive", "queued"), ("cancel", "cancelled"),
        ("ask", "blocked"), ("approve", "blocked"), ("ask", "blocked"), ("reject", "blocked"), ("cancel", "cancelled"),
    ]  # fmt: skip


@on_the_engine
async def test_a_body_describes_its_move_and_not_what_came_after(engine: Engine) -> None:
    await ready(engine)
    endpoint = await Endpoint.made(engine, "task.*")
    task_id = await engine.submit(**told_of())
    for transition, message in (("retry", "first"), ("bury", "second")):
        await engine.become_due(task_id)
        error = {"type": "Busy", "kind": "transient", "message": message, "attempt": 0}
        await engine.finish(await engine.start(task_id), transition, error=error)
    await engine.revive(task_id)
    (_, retried), (_, died) = await endpoint.told()
    assert (retried["status"], retried["attempt"], retried["error"]["message"]) == ("retrying", 1, "first")
    assert (died["status"], died["attempt"], died["error"]["message"], died["life"]) == ("dead", 2, "second", 1)
    assert retried["started_at"] < died["started_at"]


@on_the_engine
async def test_several_orchestrators_and_reads_write_each_delivery_once(engine: Engine) -> None:
    await ready(engine)
    endpoint = await Endpoint.made(engine, "task.*")
    async with relays(engine, WEBHOOKS, DELIVERIES, number=2):
        async with asyncio.TaskGroup() as group:
            for _ in range(20):
                group.create_task(engine.completed(**told_of()))
                group.create_task(endpoint.deliveries())

        async def is_empty() -> bool:
            return await rows(engine) == []

        await until(is_empty)
    assert len(await endpoint.deliveries()) == 20


@on_the_engine
async def test_an_outcome_is_handled_once_and_reaches_its_endpoint_by_columns(engine: Engine) -> None:
    await ready(engine)
    endpoint = await Endpoint.made(engine, "task.*")
    await engine.completed(**told_of())
    (delivery,) = await endpoint.deliveries()
    attempt = await endpoint.take(delivery)
    transition, fields = await answered(engine, attempt, 410)
    await engine.finish(attempt, transition, **fields)
    assert await engine.pool.fetchval("SELECT state FROM webhooks") == "enabled", "the end does not touch the endpoint"
    assert await rows(engine, "delivery") == [("retry", "retrying")]
    assert (await engine.row(delivery.task_id)).checkpoint is None
    await handle_pending(engine.pool, DELIVERIES, [endpoint.webhook_id])
    assert await engine.pool.fetchval("SELECT state FROM webhooks") == "gone"


@on_the_engine
async def test_an_attempt_that_has_lost_its_task_records_no_try(engine: Engine) -> None:
    await ready(engine)
    endpoint = await Endpoint.made(engine, "task.*")
    await engine.completed(**told_of())
    (delivery,) = await endpoint.deliveries()
    attempt = await endpoint.take(delivery)
    made = Try(
        task_id=attempt.task_id, attempt=attempt.attempt, claim_token=attempt.claim_token, delivered=True, gone=False,
        status_code=200, elapsed_ms=1, error=None, excerpt=None,
    )  # fmt: skip
    assert not await carrying.record(engine.pool, replace(made, claim_token=uuid4()))
    assert await carrying.record(engine.pool, made)
    assert not await carrying.record(engine.pool, made), "once for each attempt"
    assert (await endpoint.deliveries())[0].attempts == 1


# The bit


async def is_set(engine: Engine) -> bool:
    found: bool = await engine.pool.fetchval("SELECT EXISTS (SELECT 1 FROM global_subscriptions WHERE bits <> 0)")
    return found


@on_the_engine
async def test_the_bit_is_set_while_an_endpoint_subscribes_to_anything(engine: Engine) -> None:
    endpoint = await Endpoint.made(engine)
    await checks.check(engine.pool, held_most=10, held_days=30)
    assert not await is_set(engine)
    await endpoints.alter(engine.pool, endpoint.webhook_id, {"events": ["task.*"]})
    await checks.check(engine.pool, held_most=10, held_days=30)
    assert await is_set(engine)
    await endpoints.delete(engine.pool, endpoint.webhook_id)
    await checks.check(engine.pool, held_most=10, held_days=30)
    assert not await is_set(engine)


@on_the_engine
async def test_a_subscription_that_is_being_created_keeps_the_bit(engine: Engine) -> None:
    """The janitor that unsets it waits, and looks again."""
    await ready(engine)
    endpoint = await Endpoint.made(engine, "task.*")
    await endpoints.delete(engine.pool, endpoint.webhook_id)
    new = endpoints.NewWebhook(
        webhook_id=uuid4(), user_id="ann", url="https://example.org/new", secret=b"sealed", events=("task.*",)
    )
    async with engine.pool.acquire() as other, other.transaction():
        await endpoints.create(other, new)
        correcting = asyncio.create_task(listening.unset_if_unused(engine.pool))
        await until_one_waits(engine)
    await correcting
    await engine.completed(**told_of())
    assert len(await Endpoint(engine, new.webhook_id).deliveries()) == 1


@on_the_engine
async def test_a_subscription_waits_for_the_bit_to_be_unset_and_sets_it_again(engine: Engine) -> None:
    endpoint = await Endpoint.made(engine, "task.*")
    await endpoints.delete(engine.pool, endpoint.webhook_id)
    async with transaction(engine.pool) as session:
        await listening.unset(session)
        creating = asyncio.create_task(Endpoint.made(engine, "task.*"))
        await until_one_waits(engine)
    await creating
    assert await is_set(engine)


# Older builds


UNTOLD = """
CREATE TABLE untold (
    untold_id bigint GENERATED ALWAYS AS IDENTITY, subject text, task_id uuid, seq int, move jsonb, error text
)
"""
"""What they could not handle, as it is before migration 0032."""

LEFT_UNTOLD = """
WITH gone AS (DELETE FROM outbox WHERE feature = $1 AND task_id IS NOT NULL RETURNING *)
INSERT INTO untold (subject, task_id, seq, move, error)
SELECT $1, task_id, seq, to_jsonb(gone) || jsonb_build_object('concerns', $2::int), 'refused' FROM gone
"""
EVENT = {
    "type": "provider.paused", "subject": "openrouter", "seq": 7, "at": "2030-06-01T12:00:00+00:00", "owner": None,
    "about": {}, "data": {"provider": "openrouter", "reason": "429", "until": None},
}  # fmt: skip


async def left_by_an_older_build(engine: Engine) -> Endpoint:
    """A move, an event and an outcome that its functions could not handle."""
    await ready(engine)
    endpoint = await Endpoint.made(engine, "task.*", "provider.*", user_id="root", scope="all")
    await engine.completed(**told_of())
    (delivery,) = await endpoint.deliveries()
    attempt = await endpoint.take(delivery)
    said = {"attempt": 1, "delivered": True, "status_code": 204, "elapsed_ms": 3, "error": None, "excerpt": ""}
    await engine.finish(attempt, checkpoint={"try": said})
    await engine.dead(**told_of())
    await engine.sql(LEFT_UNTOLD, "webhook", 4)
    await engine.sql(LEFT_UNTOLD, "delivery", 128)
    await engine.sql(
        "INSERT INTO untold (subject, task_id, seq, move, error)"
        " VALUES ('webhook', '00000000-0000-0000-0000-000000000000', 0, $1::text::jsonb, 'refused')",
        json.dumps(EVENT),
    )
    return endpoint


@on_the_engine
async def test_what_an_older_build_could_not_handle_is_delivered_after_the_migration(engine: Engine) -> None:
    await engine.sql(UNTOLD)
    try:
        endpoint = await left_by_an_older_build(engine)
        for statement in (
            MIGRATION.PENDING_MOVES, MIGRATION.PENDING_EVENTS, MIGRATION.TRIES, MIGRATION.PENDING_OUTCOMES,
        ):  # fmt: skip
            await engine.sql(statement)
        assert await engine.pool.fetchval("SELECT count(*) FROM untold") == 0
    finally:
        await engine.sql("DROP TABLE untold")
    assert sorted(kind for kind, _ in await endpoint.told()) == ["provider.paused", "task.completed", "task.dead"]
    assert (await endpoint.deliveries())[0].state == "delivered"
    tries = await engine.pool.fetch("SELECT status_code, delivered, gone FROM delivery_tries")
    assert [tuple(row) for row in tries] == [(204, True, False)]

"""An endpoint's own breaker: what waits is held and released in order, nothing is lost, and no other endpoint waits."""

import asyncio
from datetime import UTC, datetime
from functools import partial

import pytest

from tests.support.engine.store import Engine, on_the_engine, until
from tests.support.engine.webhooks import Endpoint, a_key, catch_up, ready, told_of, until_one_waits
from windlass.services.janitor.duties.endpoints import look_after_endpoints, recheck_endpoints
from windlass.services.janitor.rhythms import UNTIL_CALLED
from windlass.shared.features.transactions import transaction
from windlass.shared.features.webhooks import carrying, checks, endpoints, settling, writing
from windlass.shared.features.webhooks.rules import Event
from windlass.shared.settings import Settings
from windlass.shared.store import webhooks
from windlass.shared.store.access import keys
from windlass.shared.store.functions import named


async def with_deliveries(engine: Engine, number: int, *events: str, **fields: str) -> Endpoint:
    await ready(engine)
    endpoint = await Endpoint.made(engine, *(events or ("task.*",)), **fields)
    for _ in range(number):
        await engine.completed(**told_of())
    await catch_up(engine)
    return endpoint


@on_the_engine
async def test_a_try_is_kept_with_what_was_answered(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 1)
    (delivery,) = await endpoint.deliveries()
    await endpoint.answer(delivery, 503)
    await endpoint.answer(delivery, 204)
    (after,) = await endpoint.deliveries()
    assert (after.state, after.attempts, after.last_status) == ("delivered", 2, 204)
    tries = await webhooks.tries(engine.pool, delivery.delivery_id)
    assert [(each.attempt, each.status_code, each.delivered, each.excerpt) for each in tries] == [
        (1, 503, False, "words"),
        (2, 204, True, "words"),
    ]
    assert (await endpoint.row()).last_success_at is not None
    assert await endpoint.state() == "enabled"


@on_the_engine
async def test_after_five_failures_in_a_row_all_but_the_oldest_are_held(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 4)
    other = await Endpoint.made(engine, "task.*")
    await endpoint.fail(4)
    assert await endpoint.state() == "enabled"
    assert await endpoint.states() == ["waiting"] * 4
    await endpoint.answer((await endpoint.deliveries())[3], 500)
    assert await endpoint.state() == "failing"
    assert await endpoint.states() == ["waiting", "held", "held", "held"]
    await engine.completed(**told_of())
    assert await endpoint.states() == ["waiting", *["held"] * 4], "born held, while an older one tries"
    assert await other.states() == ["waiting"], "no endpoint delays another"
    assert await endpoint.is_refused((await endpoint.deliveries())[2])


@on_the_engine
async def test_a_success_between_failures_begins_anew(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 2)
    first, second = await endpoint.deliveries()
    await endpoint.fail(4)
    await endpoint.answer(first, 200)
    await endpoint.answer(second, 500)
    assert await endpoint.state() == "enabled"


@on_the_engine
async def test_a_2xx_releases_the_rest_in_order(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 4)
    await endpoint.fail(5)
    oldest = (await endpoint.deliveries())[0]
    await endpoint.answer(oldest, 200)
    assert await endpoint.state() == "enabled"
    assert await endpoint.states() == ["delivered", "waiting", "waiting", "waiting"]
    rows = [await engine.row(each.task_id) for each in (await endpoint.deliveries())[1:]]
    assert all(row.available_at.year < 9000 for row in rows)
    times = [each.next_at for each in (await endpoint.deliveries())[1:]]
    assert times == sorted(times)  # type: ignore[type-var]


@on_the_engine
async def test_those_that_waited_for_the_endpoints_key_are_not_overtaken(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 4)
    first, second, third, _ = await endpoint.deliveries()
    running = [await endpoint.take(each) for each in (first, second)]
    assert await endpoint.is_refused(third), "two at once may be under way"
    assert (await engine.row(third.task_id)).held == ["key"]
    await endpoints.disable(engine.pool, endpoint.webhook_id)
    await engine.completed(**told_of())
    for attempt in running:
        await endpoint.end(attempt, 200)
    await endpoints.enable(engine.pool, endpoint.webhook_id, replay=True)
    rest = (await endpoint.deliveries())[2:]
    rows = [await engine.row(each.task_id) for each in rest]
    assert [row.held for row in rows] == [[], [], []]
    assert [row.available_at for row in rows] == sorted(row.available_at for row in rows)


@on_the_engine
async def test_a_probe_whose_schedule_is_used_up_fails_and_the_next_one_tries(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 3)
    await endpoint.fail(5)
    oldest = (await endpoint.deliveries())[0]
    await endpoint.answer(oldest, 500, last=True)
    assert await endpoint.states() == ["failed", "waiting", "held"]
    assert await endpoint.state() == "failing"
    assert (await endpoint.deliveries())[0].reason == "the endpoint answered 500"
    assert await endpoints.redeliver(engine.pool, oldest.delivery_id) is None
    (again, *_) = await endpoint.deliveries()
    assert (again.delivery_id, again.state) == (oldest.delivery_id, "waiting"), "under its own id"
    await endpoint.answer(again, 200)
    assert await endpoint.states() == ["delivered", "waiting", "waiting"]


@on_the_engine
async def test_one_bad_delivery_fails_alone(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 3)
    first, second, third = await endpoint.deliveries()
    for good in (second, third):
        for _ in range(3):
            await endpoint.answer(first, 500)
        await endpoint.answer(good, 200)
    await endpoint.answer(first, 500, last=True)
    assert await endpoint.states() == ["failed", "delivered", "delivered"]
    assert await endpoint.state() == "enabled"
    assert await endpoints.redeliver(engine.pool, first.delivery_id) is None


@on_the_engine
async def test_five_days_of_failure_disable_it_and_the_owner_hears_of_it_elsewhere(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 2)
    await endpoint.fail(5)
    other = await Endpoint.made(engine, "webhook.disabled")
    foreign = await Endpoint.made(engine, "webhook.disabled", user_id="bob")
    oldest = (await endpoint.deliveries())[0]
    await endpoint.answer(oldest, 500)
    assert await endpoint.state() == "failing", "not yet"
    await engine.sql("UPDATE webhooks SET failing_since = failing_since - interval '5 days'")
    await endpoint.answer(oldest, 500)
    assert await endpoint.state() == "disabled"
    assert await endpoint.states() == ["held", "held"]
    ((type_, data),) = await other.told()
    assert (type_, data["webhook_id"]) == ("webhook.disabled", str(endpoint.webhook_id))
    assert await foreign.deliveries() == []
    await engine.completed(**told_of())
    assert await endpoint.states() == ["held"] * 3, "what happens meanwhile is kept for it"


@on_the_engine
async def test_a_disabled_one_is_tried_once_a_day_and_heals_by_itself(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 2)
    await endpoint.fail(5)
    await engine.sql("UPDATE webhooks SET failing_since = failing_since - interval '5 days'")
    oldest = (await endpoint.deliveries())[0]
    await endpoint.answer(oldest, 500)
    assert await look_after_endpoints(engine.pool) == UNTIL_CALLED
    assert await endpoint.states() == ["held", "held"], "a day has to pass"
    for answer, states in ((500, ["held", "held"]), (200, ["delivered", "waiting"])):
        await engine.sql("UPDATE webhooks SET probe_at = clock_timestamp() WHERE probe_at IS NOT NULL")
        await look_after_endpoints(engine.pool)
        assert await endpoint.states() == ["waiting", "held"]
        await endpoint.answer(oldest, answer)
        assert await endpoint.states() == states
    assert await endpoint.state() == "enabled"


@on_the_engine
async def test_after_thirty_days_nobody_tries_a_disabled_one(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 1)
    await endpoint.fail(5)
    await engine.sql("UPDATE webhooks SET failing_since = failing_since - interval '5 days'")
    await endpoint.answer((await endpoint.deliveries())[0], 500)
    await engine.sql("UPDATE webhooks SET probe_at = now(), changed_at = now() - interval '31 days'")
    await look_after_endpoints(engine.pool)
    assert (await endpoint.row()).probe_at is None, "that was the last time"


@on_the_engine
async def test_410_is_gone_until_a_person_says_otherwise(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 2)
    first, second = await endpoint.deliveries()
    await endpoint.answer(first, 410)
    assert await endpoint.state() == "gone"
    assert await endpoint.states() == ["held", "held"]
    await endpoints.enable(engine.pool, endpoint.webhook_id, replay=True)
    assert await endpoint.states() == ["waiting", "waiting"]
    await endpoint.answer(second, 200)


@pytest.mark.parametrize(("replay", "states"), [(True, ["waiting", "waiting"]), (False, ["failed", "failed"])])
@on_the_engine
async def test_disabled_by_hand_and_enabled_with_or_without_what_was_held(
    engine: Engine, replay: bool, states: list[str]
) -> None:
    endpoint = await with_deliveries(engine, 1)
    await endpoints.disable(engine.pool, endpoint.webhook_id)
    await engine.completed(**told_of())
    assert await endpoint.states() == ["held", "held"]
    await endpoints.enable(engine.pool, endpoint.webhook_id, replay=replay)
    assert await endpoint.states() == states
    assert {each.reason for each in await endpoint.deliveries()} == {None if replay else "not replayed"}


@on_the_engine
async def test_one_under_way_while_it_is_disabled_comes_back_and_is_held(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 2)
    first, second = await endpoint.deliveries()
    under_way = await endpoint.take(first)
    delivered = await endpoint.take(second)
    await endpoints.disable(engine.pool, endpoint.webhook_id)
    await endpoint.end(under_way, 500)
    await endpoint.end(delivered, 200)
    assert await endpoint.states() == ["held", "delivered"]
    assert await endpoint.state() == "disabled", "what was on its way does not undo what a person did"


@on_the_engine
async def test_the_turn_is_looked_at_at_every_try(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 2)
    first, second = await endpoint.deliveries()

    async def word(each: webhooks.DeliveryRead) -> str:
        turn = await carrying.begin(engine.pool, each.task_id, each.delivery_id)
        return "nothing" if turn is None else turn.word

    assert [await word(first), await word(second)] == ["send", "send"]
    await engine.sql("UPDATE webhooks SET state = 'failing'")
    assert [await word(first), await word(second)] == ["send", "held"]
    await engine.sql("UPDATE webhooks SET state = 'disabled'")
    assert [await word(first), await word(second)] == ["held", "held"]
    await engine.sql("UPDATE webhooks SET state = 'enabled'")
    await endpoints.alter(
        engine.pool, endpoint.webhook_id, {"events": ["workflow.*"], "url": "https://example.org/new"}
    )
    assert [await word(first), await word(second)] == ["unsubscribed", "unsubscribed"]
    await endpoints.alter(engine.pool, endpoint.webhook_id, {"events": ["task.completed"]})
    turn = await carrying.begin(engine.pool, first.task_id, first.delivery_id)
    assert turn is not None
    assert (turn.word, turn.url, turn.previous_secret) == ("send", "https://example.org/new", None)
    await endpoints.rotate(engine.pool, endpoint.webhook_id, b"newer")
    turn = await carrying.begin(engine.pool, first.task_id, first.delivery_id)
    assert turn is not None
    assert (turn.secret, turn.previous_secret) == (b"newer", b"sealed")
    await engine.sql("UPDATE webhooks SET previous_until = clock_timestamp()")
    turn = await carrying.begin(engine.pool, first.task_id, first.delivery_id)
    assert turn is not None
    assert turn.previous_secret is None, "its day is over"
    assert await carrying.begin(engine.pool, second.task_id, first.delivery_id) is None, "a task carries its own alone"


@on_the_engine
async def test_one_that_is_given_back_because_it_is_not_its_turn_is_held(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 3)
    _, second, _ = await endpoint.deliveries()
    claimed = await endpoint.take(second)
    await engine.sql("UPDATE webhooks SET state = 'failing', failing_since = now()")
    await engine.finish(claimed, "interrupt")
    assert await endpoint.states() == ["waiting", "held", "held"]
    assert (await engine.row(second.task_id)).retry_count == 0


@on_the_engine
async def test_a_delivery_that_waits_is_sent_at_once_and_its_old_task_says_nothing_more(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 1)
    (delivery,) = await endpoint.deliveries()
    await endpoint.answer(delivery, 500)
    assert await endpoints.redeliver(engine.pool, delivery.delivery_id) is None
    (again,) = await endpoint.deliveries()
    assert again.task_id != delivery.task_id
    assert await engine.status(delivery.task_id) == "cancelled"
    assert again.state == "waiting"
    under_way = await endpoint.take(again)
    assert await endpoints.redeliver(engine.pool, delivery.delivery_id) == "delivery-under-way"
    await endpoint.end(under_way, 200)
    assert await endpoints.redeliver(engine.pool, delivery.delivery_id) is None, "also one that was delivered"
    assert await endpoint.states() == ["waiting"]


@on_the_engine
async def test_a_test_goes_whatever_the_state_is_and_is_tried_once(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 1)
    await endpoint.fail(5)
    delivery_id = await endpoints.test(engine.pool, endpoint.webhook_id)
    assert delivery_id is not None
    delivery = await webhooks.delivery(engine.pool, delivery_id)
    assert delivery is not None
    assert (delivery.type, delivery.shown_state) == ("webhook.test", "waiting")
    assert (await engine.row(delivery.task_id)).max_retries == 0
    await endpoint.answer(delivery, 200)
    assert await endpoint.state() == "enabled", "it has answered"


@on_the_engine
async def test_a_change_waits_for_a_locked_delivery(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 3)
    _, second, _ = await endpoint.deliveries()
    async with engine.holding("SELECT 1 FROM tasks WHERE task_id = $1 FOR UPDATE", second.task_id):
        disabling = asyncio.create_task(endpoints.disable(engine.pool, endpoint.webhook_id))
        await until_one_waits(engine)
    await disabling
    assert await endpoint.states() == ["held"] * 3


@on_the_engine
async def test_many_are_released_in_pages(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 0)
    await endpoints.disable(engine.pool, endpoint.webhook_id)
    await with_many(endpoint, 303)
    await endpoints.enable(engine.pool, endpoint.webhook_id, replay=True)
    assert await engine.count("held = '{endpoint}'") == 103
    await catch_up(engine)
    assert await engine.count("held = '{endpoint}'") == 0


@on_the_engine
async def test_many_are_given_up_in_pages(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 0)
    await endpoints.disable(engine.pool, endpoint.webhook_id)
    await with_many(endpoint, 303)
    await endpoints.enable(engine.pool, endpoint.webhook_id, replay=False)
    await catch_up(engine)
    assert await engine.count("status = 'cancelled'") == 303
    given_up = await engine.pool.fetch("SELECT DISTINCT state, reason FROM deliveries")
    assert [tuple(row) for row in given_up] == [("failed", "not replayed")]


async def with_many(endpoint: Endpoint, number: int) -> None:
    """In batches: a busy machine takes its time for each."""
    row = await endpoint.row()
    receiver = writing.Receiver(row.webhook_id, row.user_id, row.state)
    for first in range(0, number, 100):
        addressed = [
            (Event("task.completed", str(each), 1, datetime.now(UTC), "ann", {}, {"user_id": "ann"}), [receiver])
            for each in range(first, min(first + 100, number))
        ]
        async with transaction(endpoint.engine.pool) as session:
            await writing.write(session, addressed)


@on_the_engine
async def test_a_failing_endpoint_that_nobody_tries_is_found(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 2)
    await endpoint.fail(5)
    first, _ = await endpoint.deliveries()
    await engine.sql(f"SELECT {named('hold_tasks')}(ARRAY[$1::uuid], 'endpoint')", first.task_id)
    assert await endpoint.states() == ["held", "held"]
    await recheck_endpoints(engine.pool, Settings())
    assert await endpoint.states() == ["waiting", "held"]


@on_the_engine
async def test_what_was_told_just_as_its_endpoint_was_enabled_or_deleted_is_found(engine: Engine) -> None:
    """A delivery that is written as held waits for the change of its endpoint."""
    for change, became in (
        (partial(endpoints.enable, replay=True), "waiting"),
        (endpoints.delete, "failed"),
    ):
        endpoint = await with_deliveries(engine, 0)
        await endpoints.disable(engine.pool, endpoint.webhook_id)
        attempt = await engine.running(**told_of())
        async with engine.pool.acquire() as other, other.transaction():
            await change(other, endpoint.webhook_id)
            await engine.finish(attempt)
            writing_it = asyncio.create_task(catch_up(engine))
            await until_one_waits(engine)
        await writing_it
        assert await endpoint.states() == ([became] if became == "waiting" else [])
        await endpoints.delete(engine.pool, endpoint.webhook_id)


@on_the_engine
async def test_a_change_waits_for_a_delivery_that_is_just_written(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 0)
    await endpoints.disable(engine.pool, endpoint.webhook_id)
    row = await endpoint.row()
    event = Event("task.completed", "one", 1, datetime.now(UTC), "ann", {}, {"user_id": "ann"})
    async with engine.pool.acquire() as other, other.transaction():
        await writing.write(other, [(event, [writing.Receiver(row.webhook_id, row.user_id, row.state)])])
        enabling = asyncio.create_task(endpoints.enable(engine.pool, endpoint.webhook_id, replay=True))
        await until_one_waits(engine)
    await enabling
    assert await endpoint.states() == ["waiting"]


@on_the_engine
async def test_an_endpoint_takes_two_deliveries_at_once(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 3)
    first, second, third = await endpoint.deliveries()
    under_way = await endpoint.take(first)
    await endpoint.take(second)
    assert await endpoint.is_refused(third)
    await endpoint.end(under_way, 200)
    await endpoint.take(third)


@on_the_engine
async def test_who_has_no_key_left_is_told_nothing_more(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 3)
    await endpoint.fail(5)
    await engine.sql("INSERT INTO api_keys (key_id, secret_hash, role, user_id) VALUES ('other', '', 'user', 'ann')")
    await keys.revoke(engine.pool, "other")
    assert await endpoint.states() == ["waiting", "held", "held"], "there is another"
    under_way = await endpoint.take((await endpoint.deliveries())[0])
    await keys.revoke(engine.pool, "annuser")
    assert await endpoint.states() == ["waiting", "failed", "failed"]
    assert (await endpoint.deliveries())[1].reason == "its owner has no key any more"
    await endpoint.end(under_way, 500)
    row = await endpoint.row()
    assert (row.state, row.reason, row.probe_at) == ("disabled", "its owner has no key any more", None)
    assert await endpoint.states() == ["held", "failed", "failed"], "what was under way comes back, and waits"
    await engine.completed(**told_of())
    assert len(await endpoint.states()) == 3, "nothing more is written for it"


@on_the_engine
async def test_who_is_no_admin_any_more_hears_nothing_of_other_people_s(engine: Engine) -> None:
    everything = await with_deliveries(engine, 1, user_id="root", scope="all")
    own = await Endpoint.made(engine, "task.*", user_id="root")
    await keys.revoke(engine.pool, "rootadmin")
    assert (await everything.row()).reason == "its owner is no admin any more"
    assert (await everything.states(), await own.state()) == (["failed"], "enabled")


@on_the_engine
async def test_a_right_ends_when_its_key_expires(engine: Engine) -> None:
    """By the clock alone: nothing is written, and no process has noticed, until the sweep disables the endpoint."""
    everything = await with_deliveries(engine, 1, user_id="root", scope="all")
    await a_key(engine, "root", "user")
    (written,) = await everything.deliveries()
    assert (written.user_id, written.told_user) == ("root", "ann")
    attempt = await everything.take(written)

    async def word() -> str:
        turn = await carrying.begin(engine.pool, attempt.task_id, written.delivery_id)
        assert turn is not None
        return turn.word

    assert await word() == "send"
    await engine.sql("UPDATE api_keys SET expires_at = clock_timestamp() WHERE role = 'admin'")
    assert await word() == "forbidden", "it is checked at each try"
    own = await Endpoint.made(engine, "task.*", user_id="root")
    await engine.completed(**told_of())
    await engine.completed(**told_of(user_id="root"))
    assert [each.told_user for each in await everything.deliveries()] == ["ann", "root"], "of nothing of hers any more"
    assert [each.told_user for each in await own.deliveries()] == ["root"]
    assert await everything.state() == "enabled"
    await recheck_endpoints(engine.pool, Settings())
    row = await everything.row()
    assert (row.state, row.reason) == ("disabled", "its owner is no admin any more")
    assert await own.state() == "enabled"


@on_the_engine
async def test_a_user_reads_what_tells_of_its_own_things_alone(engine: Engine) -> None:
    everything = await with_deliveries(engine, 1, user_id="root", scope="all")
    await engine.completed(**told_of(user_id="root"))
    tested = await endpoints.test(engine.pool, everything.webhook_id)
    await catch_up(engine)
    seen = await webhooks.deliveries(engine.pool, everything.webhook_id, told_user="root")
    assert [each.told_user for each in seen] == ["root", "root"]
    assert tested in {each.delivery_id for each in seen}
    assert len(await everything.deliveries()) == 3


@on_the_engine
async def test_a_disabled_endpoint_holds_all_that_waits_however_much_it_is(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 1)
    await with_many(endpoint, 320)
    await endpoints.disable(engine.pool, endpoint.webhook_id)
    await catch_up(engine)
    waiting = await webhooks.deliveries(engine.pool, endpoint.webhook_id, state="waiting", limit=500)
    assert waiting == [], "none is claimed only to be handed back"
    assert (await endpoint.row()).held == 321


@on_the_engine
async def test_nothing_is_sent_again_to_a_disabled_endpoint_and_to_a_failing_one_in_its_turn(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 3)
    _, _, youngest = await endpoint.deliveries()
    await endpoint.fail(5)
    assert await endpoints.redeliver(engine.pool, youngest.delivery_id) is None
    assert await endpoint.states() == ["waiting", "held", "held"]
    await endpoints.disable(engine.pool, endpoint.webhook_id)
    assert await endpoints.redeliver(engine.pool, youngest.delivery_id) == "webhook-disabled"
    assert await endpoint.states() == ["held", "held", "held"]


@on_the_engine
async def test_a_disabled_endpoint_gives_up_all_that_it_holds_beyond_its_limit_page_by_page(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "PAGE", 5)
    endpoint = await with_deliveries(engine, 0)
    await endpoints.disable(engine.pool, endpoint.webhook_id)
    for _ in range(23):
        await engine.completed(**told_of())
    await catch_up(engine)
    await checks.check(engine.pool, held_most=3, held_days=30)

    async def holds_three() -> bool:
        return (await endpoint.row()).held == 3

    await until(holds_three)
    assert await endpoint.states() == ["failed"] * 20 + ["held"] * 3


@on_the_engine
async def test_a_disabled_endpoint_holds_so_many_deliveries_for_so_long(engine: Engine) -> None:
    endpoint = await with_deliveries(engine, 1)
    await endpoints.disable(engine.pool, endpoint.webhook_id)
    for _ in range(4):
        await engine.completed(**told_of())
    await catch_up(engine)
    await checks.check(engine.pool, held_most=3, held_days=30)
    assert await endpoint.states() == ["failed", "failed", "held", "held", "held"]
    third = (await endpoint.deliveries())[2]
    await engine.sql(
        "UPDATE deliveries SET created_at = created_at - interval '31 days' WHERE delivery_id = $1", third.delivery_id
    )
    await checks.check(engine.pool, held_most=3, held_days=30)
    assert await endpoint.states() == ["failed", "failed", "failed", "held", "held"]
    assert (await endpoint.deliveries())[2].reason == "held for too long at a disabled webhook"
    assert (await endpoint.row()).held == 2

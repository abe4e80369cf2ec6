"""Orders for paid work as rows: fenced, repeatable, and holding their slot until they are known to have ended."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from uuid_utils.compat import uuid7

from tests.integration.test_why import why
from tests.support.engine.dispatching import start_next
from tests.support.engine.one_order import intend_one, latest_order
from tests.support.engine.store import Engine, a_submission, on_the_engine
from windlass.shared.admission import WakeUp, wake_ups
from windlass.shared.concerns import Concern
from windlass.shared.order_states import MOVES, OrderState
from windlass.shared.reasons import Reason
from windlass.shared.store import orders, tasks
from windlass.shared.store.flow_control import providers
from windlass.shared.store.order_steps import Intent, NewContent
from windlass.shared.store.tasks import Claimed, Refused

HASH = "ab" * 32


async def intend(engine: Engine, attempt: Claimed, *, callback_hash: str | None = None) -> UUID:
    generation_id = uuid7()
    intent = Intent(generation_id, "txt2img", {"prompt": "a boat"}, callback_hash or uuid4().hex * 2)
    assert await intend_one(engine.pool, attempt, intent)
    return generation_id


async def move(engine: Engine, attempt: Claimed | None, generation_id: UUID, name: str, **facts: Any) -> bool:
    return await orders.move(engine.pool, attempt, generation_id, name, **facts)


async def ordered(engine: Engine, **fields: Any) -> tuple[Claimed, UUID]:
    """A running task whose job the provider works on."""
    attempt = await engine.running(**fields)
    generation_id = await intend(engine, attempt)
    assert await move(engine, attempt, generation_id, "place", job_id="job-1", response={"id": "job-1"})
    return attempt, generation_id


async def status(engine: Engine, generation_id: UUID) -> str:
    return str(await engine.pool.fetchval("SELECT status FROM generations WHERE generation_id = $1", generation_id))


def a_file(index: int = 0) -> NewContent:
    return NewContent(uuid4(), index, "https://there/1.png", "image/png", "png", f"place/{index}", 4, "00")


# Fences


@on_the_engine
async def test_an_order_goes_from_intent_to_contents(engine: Engine) -> None:
    attempt, generation_id = await ordered(engine)
    assert (await engine.row(attempt.task_id))["provider_job_id"] == "job-1"
    assert await move(engine, attempt, generation_id, "fetch", response={"done": True})
    assert await move(engine, attempt, generation_id, "complete", contents=[a_file(0), a_file(1)])
    kept = await orders.contents(engine.pool, generation_id)
    assert [row["index"] for row in kept] == [0, 1]
    latest = await latest_order(engine.pool, attempt.task_id)
    assert latest is not None
    assert (latest["status"], latest["response"], latest["user_id"]) == ("completed", {"done": True}, "ann")


@on_the_engine
async def test_an_attempt_that_lost_its_task_can_neither_intend_nor_move(engine: Engine) -> None:
    attempt, generation_id = await ordered(engine)
    await engine.lapse(attempt.task_id)
    await tasks.stall(engine.pool)
    assert not await intend_one(engine.pool, attempt, Intent(uuid4(), "txt2img", {}, HASH))
    assert not await move(engine, attempt, generation_id, "fetch")
    assert await status(engine, generation_id) == "open"


@on_the_engine
async def test_a_step_that_is_repeated_answers_as_the_first_time(engine: Engine) -> None:
    attempt, generation_id = await ordered(engine)
    assert await move(engine, attempt, generation_id, "place", job_id="job-1")
    await move(engine, attempt, generation_id, "fetch")
    file = a_file()
    for _ in range(2):
        assert await move(engine, attempt, generation_id, "complete", contents=[file])
    assert len(await orders.contents(engine.pool, generation_id)) == 1


@pytest.mark.parametrize("name", MOVES)
@on_the_engine
async def test_a_move_begins_only_where_it_may(engine: Engine, name: str) -> None:
    attempt = await engine.running()
    allowed = {*MOVES[name].sources, MOVES[name].target}
    for state in OrderState:
        generation_id = await intend(engine, attempt)
        job = None if state in {OrderState.INTENDED, OrderState.REFUSED, OrderState.UNKNOWN} else "job"
        query = "UPDATE generations SET status = $2, provider_job_id = $3 WHERE generation_id = $1"
        await engine.sql(query, generation_id, state.value, job)
        moved = await move(engine, attempt, generation_id, name, job_id="job")
        assert moved == (state in allowed), state


@on_the_engine
async def test_nobody_but_its_owner_moves_the_order_of_a_task_that_lives(engine: Engine) -> None:
    attempt, generation_id = await ordered(engine)
    assert not await move(engine, None, generation_id, "fail")
    await engine.finish(attempt, "bury")
    assert await move(engine, None, generation_id, "fail")
    assert await status(engine, generation_id) == "failed"


# Slots


async def may_start(engine: Engine, task_id: UUID) -> bool:
    answer = await engine.claim(task_id)
    assert isinstance(answer, Claimed) or answer == Refused(task_id, Reason.PROVIDER_LIMIT)
    return isinstance(answer, Claimed)


@pytest.mark.parametrize("known", [True, False], ids=["job-known", "only-intended"])
@on_the_engine
async def test_an_open_job_keeps_its_slot_when_its_worker_is_lost(engine: Engine, known: bool) -> None:
    await engine.provide("one", limit=1)
    attempt = await engine.running(provider="one")
    generation_id = await intend(engine, attempt)
    if known:
        await move(engine, attempt, generation_id, "place", job_id="job")
    other = await engine.submit(provider="one")
    await engine.lapse(attempt.task_id)
    await tasks.stall(engine.pool)
    assert not await may_start(engine, other)
    assert await may_start(engine, attempt.task_id), "it holds its slot already and needs no other"


@on_the_engine
async def test_a_cancelled_task_keeps_its_slot_until_its_job_has_ended(engine: Engine) -> None:
    await engine.provide("one", limit=1)
    attempt, generation_id = await ordered(engine, provider="one")
    other = await engine.submit(provider="one")
    await engine.cancel(attempt.task_id)
    assert await engine.finish(attempt, "interrupt") == "cancelled"
    assert not await may_start(engine, other)
    (abandoned,) = await orders.abandoned(engine.pool, ["one"], again_after_seconds=60)
    assert (abandoned["generation_id"], abandoned["task_status"]) == (generation_id, "cancelled")
    assert await orders.abandoned(engine.pool, ["one"], again_after_seconds=60) == []
    assert await move(engine, None, generation_id, "fail")
    assert await may_start(engine, other)


@pytest.mark.parametrize(("name", "frees"), [(name, not each.keeps_slot) for name, each in MOVES.items()])
@on_the_engine
async def test_each_move_says_whether_the_slot_is_held(engine: Engine, name: str, frees: bool) -> None:
    await engine.provide("one", limit=1)
    attempt = await engine.running(provider="one")
    generation_id = await intend(engine, attempt)
    await engine.sql(
        "UPDATE generations SET status = $2, provider_job_id = 'job' WHERE generation_id = $1",
        generation_id,
        MOVES[name].sources[0].value,
    )
    await move(engine, attempt, generation_id, name, job_id="job")
    await engine.finish(attempt, "bury")
    assert await may_start(engine, await engine.submit(provider="one")) is frees


@on_the_engine
async def test_what_nobody_can_find_out_is_given_up_and_never_looked_at_again(engine: Engine) -> None:
    await engine.provide("one", limit=1)
    attempt = await engine.running(provider="one")
    generation_id = await intend(engine, attempt)
    await move(engine, attempt, generation_id, "lose")
    await engine.finish(attempt, "bury")
    other = await engine.submit(provider="one")
    assert not await may_start(engine, other)
    await orders.give_up(engine.pool, generation_id)
    assert await may_start(engine, other)
    assert await orders.abandoned(engine.pool, ["one"], again_after_seconds=0) == []


@on_the_engine
async def test_who_holds_a_slot_is_rung_for_and_started_though_none_is_free(engine: Engine) -> None:
    await engine.provide("one", limit=1)
    attempt, _ = await ordered(engine, provider="one")
    others = await engine.submit_many(3, provider="one")
    await engine.finish(attempt, "interrupt")
    (view,) = await providers.look(engine.pool, heard_within_seconds=30, only=["one"])
    assert wake_ups(view) == [WakeUp("probe.one", 1, 1)]
    assert (await why(engine, others[0]))["reason"] == "provider-limit"
    (resumed,) = await start_next(engine, queues=["probe.one"])
    assert resumed.task_id == attempt.task_id
    assert await start_next(engine, queues=["probe.one"]) == []
    await engine.finish(resumed)
    assert await engine.count("job_open") == 1, "its job has not ended just because the task has"


@on_the_engine
async def test_why_says_that_it_holds_a_slot(engine: Engine) -> None:
    await engine.provide("one", limit=1)
    attempt, _ = await ordered(engine, provider="one")
    await engine.finish(attempt, "interrupt")
    await engine.sql(
        "INSERT INTO workers (worker_id, hostname, pid, queues, capacity, state) VALUES ('w', 'h', 1, $1, 4, 'active')",
        ["probe.one"],
    )
    assert (await why(engine, attempt.task_id))["reason"] == "about-to-start"


@on_the_engine
async def test_after_a_pause_an_open_job_is_the_one_that_goes_first(engine: Engine) -> None:
    await engine.provide("one", limit=2)
    attempt, _ = await ordered(engine, provider="one")
    other = await engine.submit(provider="one")
    await engine.finish(attempt, "interrupt")
    await engine.sql("UPDATE providers SET paused_until = clock_timestamp() - interval '1 s' WHERE name = 'one'")
    (view,) = await providers.look(engine.pool, heard_within_seconds=30, only=["one"])
    assert wake_ups(view) == [WakeUp("probe.one", 1, 1)]
    (resumed,) = await start_next(engine, queues=["probe.one"])
    assert resumed.task_id == attempt.task_id
    assert isinstance(await engine.claim(other), Refused)


# Lives and callbacks


@on_the_engine
async def test_a_revived_task_goes_on_with_its_open_job_and_forgets_an_ended_one(engine: Engine) -> None:
    attempt, generation_id = await ordered(engine)
    await engine.finish(attempt, "bury")
    await engine.revive(attempt.task_id)
    assert (await engine.row(attempt.task_id))["provider_job_id"] == "job-1"
    again = await engine.start(attempt.task_id)
    await move(engine, again, generation_id, "fail")
    await engine.finish(again, "bury")
    await engine.revive(attempt.task_id)
    assert (await engine.row(attempt.task_id))["provider_job_id"] is None


@on_the_engine
async def test_a_callback_wakes_whoever_waits_and_leaves_a_clue(engine: Engine) -> None:
    attempt = await engine.running()
    generation_id = await intend(engine, attempt, callback_hash=HASH)
    async with engine.listening("windlass_callback") as heard:
        told = await orders.hear(engine.pool, {"ok": 1}, callback_hash=bytes.fromhex(HASH), job_id="job-9")
    assert told == attempt.task_id
    assert heard == [str(attempt.task_id)]
    latest = await latest_order(engine.pool, attempt.task_id)
    assert latest is not None
    assert (latest["generation_id"], latest["provider_job_id"], latest["status"]) == (
        generation_id,
        "job-9",
        "intended",
    )
    assert await orders.hear(engine.pool, {}, callback_hash=b"another", job_id="job-9") is None


@on_the_engine
async def test_a_callback_to_the_common_address_is_found_by_its_job(engine: Engine) -> None:
    attempt, _ = await ordered(engine)
    assert await orders.hear(engine.pool, {}, provider="probe", job_id="job-1") == attempt.task_id
    assert await orders.hear(engine.pool, {}, provider="probe", job_id="job-2") is None


@on_the_engine
async def test_an_order_costs_once_however_often_its_step_is_repeated(engine: Engine) -> None:
    attempt = await engine.running()
    generation_id = await intend(engine, attempt)
    for _ in range(2):
        assert await move(engine, attempt, generation_id, "place", job_id="job-1", cost_usd=0.25)
    assert await move(engine, attempt, generation_id, "fetch")
    usage = (await engine.row(attempt.task_id))["usage"]
    assert usage == {"cost_usd": 0.25, "prompt_tokens": None, "completion_tokens": None}


# A callback that comes after the task has died of not knowing


async def given_up(engine: Engine, **fields: Any) -> tuple[UUID, UUID]:
    """A task that is dead because nobody knew what had become of its order."""
    attempt = await engine.running(**fields)
    generation_id = await intend(engine, attempt, callback_hash=HASH)
    assert await move(engine, attempt, generation_id, "lose")
    unknown = {"type": "SubmitUnknown", "kind": "permanent", "message": "who knows?", "details": {}, "attempt": 1}
    assert await engine.finish(attempt, "bury", error=unknown) == "dead"
    return attempt.task_id, generation_id


async def call_back(engine: Engine, job_id: str | None = "job-9") -> None:
    await orders.hear(engine.pool, {"ok": 1}, callback_hash=bytes.fromhex(HASH), job_id=job_id)


@on_the_engine
async def test_a_late_callback_revives_the_task_whose_next_attempt_asks_and_does_not_order(engine: Engine) -> None:
    task_id, generation_id = await given_up(engine)
    await call_back(engine, None)
    assert await engine.status(task_id) == "dead", "it names no job"
    await orders.give_up(engine.pool, generation_id)
    for _ in range(2):
        await call_back(engine)
    assert (await engine.story(task_id))[-1:] == ["revive"], "once"
    latest = await latest_order(engine.pool, task_id)
    assert latest is not None
    assert (latest["status"], latest["provider_job_id"], latest["given_up"]) == ("intended", "job-9", False)


@pytest.mark.parametrize("fields", [{"concerns": int(Concern.RUN)}, {"group_id": uuid4()}], ids=["project", "workflow"])
@on_the_engine
async def test_in_a_project_or_a_workflow_a_person_decides(engine: Engine, fields: dict[str, Any]) -> None:
    task_id, generation_id = await given_up(engine, **fields)
    await call_back(engine)
    assert not await orders.revive_lost(engine.pool, generation_id)
    latest = await latest_order(engine.pool, task_id)
    assert latest is not None
    assert (await engine.status(task_id), latest["status"]) == ("dead", "unknown")
    assert (latest["provider_job_id"], latest["callback"]) == ("job-9", {"ok": 1}), "kept, and offered"


@on_the_engine
async def test_a_late_callback_revives_nobody_who_was_ordered_once_more_or_has_a_double(engine: Engine) -> None:
    (row,) = await tasks.submit_keyed(engine.pool, [a_submission(dedupe_key="k")])
    attempt = await engine.start(row["task_id"])
    first = await intend(engine, attempt, callback_hash=HASH)
    assert await move(engine, attempt, first, "lose")
    unknown = {"type": "SubmitUnknown", "kind": "permanent", "message": "who knows?", "details": {}, "attempt": 1}
    await engine.finish(attempt, "bury", error=unknown)
    (double,) = await tasks.submit_keyed(engine.pool, [a_submission(dedupe_key="k")])
    await call_back(engine)
    assert (await engine.status(attempt.task_id), await status(engine, first)) == ("dead", "unknown")
    await engine.cancel(double["task_id"])
    assert await engine.revive(attempt.task_id) == "queued"
    again = await engine.start(attempt.task_id)
    second = await intend(engine, again)
    assert await move(engine, again, second, "lose")
    await engine.finish(again, "bury", error=unknown)
    await call_back(engine)
    assert await engine.status(attempt.task_id) == "dead", "it would be ordered a third time"


@on_the_engine
async def test_the_latest_clue_counts_until_the_job_is_known(engine: Engine) -> None:
    attempt = await engine.running()
    generation_id = await intend(engine, attempt, callback_hash=HASH)
    for job_id in ("forged", "job-9", None):
        await call_back(engine, job_id)
    latest = await latest_order(engine.pool, attempt.task_id)
    assert latest is not None
    assert latest["provider_job_id"] == "job-9"
    assert await move(engine, attempt, generation_id, "place", job_id="job-9")
    await call_back(engine, "forged")
    latest = await latest_order(engine.pool, attempt.task_id)
    assert latest is not None
    assert latest["provider_job_id"] == "job-9"

"""Idempotency and dedupe keys: one task, however often and from wherever it is submitted."""

import asyncio
import hashlib
from typing import Any
from uuid import UUID

import pytest
from asyncpg import Record as Row

from tests.support.engine.store import Engine, a_submission, on_the_engine
from tests.support.installation import NOBODY
from windlass.shared.store import tasks
from windlass.shared.store.tasks import KeyInFlight, KeyReused, Submission, UnknownDependency, submission_keys

BODY, ANOTHER_BODY = (hashlib.sha256(text).hexdigest() for text in (b"one", b"another"))


def idempotent(key: str = "k", body_hash: str = BODY, **fields: Any) -> Submission:
    return a_submission(idempotency_key=key, body_hash=body_hash, **fields)


def deduped(key: str = "k", **fields: Any) -> Submission:
    return a_submission(dedupe_key=key, **fields)


async def submit(engine: Engine, *submissions: Submission) -> list[tuple[UUID, bool]]:
    return [(row["task_id"], row["deduplicated"]) for row in await tasks.submit_keyed(engine.pool, submissions)]


async def submit_one(engine: Engine, submission: Submission) -> tuple[UUID, bool]:
    (answer,) = await submit(engine, submission)
    return answer


async def let_time_pass(engine: Engine, seconds: float) -> None:
    await engine.sql("UPDATE submission_keys SET expires_at = expires_at - make_interval(secs => $1)", seconds)


@pytest.mark.parametrize("keyed", [idempotent, deduped])
@on_the_engine
async def test_a_repeat_comes_to_the_first_task_as_it_is_now(engine: Engine, keyed: Any) -> None:
    first, second = keyed(), keyed()
    assert await submit_one(engine, first) == (first.task_id, False)
    await engine.start(first.task_id)
    row: Row
    (row,) = await tasks.submit_keyed(engine.pool, [second])
    assert (row["task_id"], row["status"], row["deduplicated"]) == (first.task_id, "running", True)
    assert await engine.count("true") == 1
    assert await engine.story(first.task_id) == ["submit", "claim"]


@on_the_engine
async def test_the_task_shows_its_dedupe_key(engine: Engine) -> None:
    task_id, _ = await submit_one(engine, deduped("mine"))
    assert (await engine.row(task_id))["dedupe_key"] == "mine"


@pytest.mark.parametrize("keyed", [idempotent, deduped])
@on_the_engine
async def test_another_user_s_key_is_another_key(engine: Engine, keyed: Any) -> None:
    first = await submit_one(engine, keyed(user_id="ann"))
    second = await submit_one(engine, keyed(user_id="bob"))
    assert not second[1]
    assert first[0] != second[0]


@on_the_engine
async def test_the_two_kinds_of_key_do_not_meet(engine: Engine) -> None:
    assert (await submit_one(engine, idempotent("same")))[1] is False
    assert (await submit_one(engine, deduped("same")))[1] is False


@on_the_engine
async def test_an_idempotency_key_with_another_body_is_refused(engine: Engine) -> None:
    await submit_one(engine, idempotent())
    with pytest.raises(KeyReused):
        await submit_one(engine, idempotent(body_hash=ANOTHER_BODY))
    assert await engine.count("true") == 1


@on_the_engine
async def test_a_dedupe_key_does_not_mind_the_body(engine: Engine) -> None:
    first, _ = await submit_one(engine, deduped(payload={"seconds": 1}))
    assert await submit_one(engine, deduped(payload={"seconds": 2})) == (first, True)


@pytest.mark.parametrize(("keyed", "ttl"), [(idempotent, 86400), (deduped, 86400)])
@on_the_engine
async def test_an_expired_key_is_as_if_it_were_not_there(engine: Engine, keyed: Any, ttl: float) -> None:
    first, _ = await submit_one(engine, keyed())
    await let_time_pass(engine, ttl - 60)
    assert await submit_one(engine, keyed()) == (first, True)
    await let_time_pass(engine, 61)
    second, deduplicated = await submit_one(engine, keyed())
    assert not deduplicated
    assert second != first
    assert await submit_one(engine, keyed()) == (second, True), "the new task has the key now"


@on_the_engine
async def test_a_dedupe_key_lasts_as_long_as_it_was_told_to(engine: Engine) -> None:
    await submit_one(engine, deduped(dedupe_ttl_seconds=100))
    await let_time_pass(engine, 40)
    assert (await submit_one(engine, deduped()))[1]
    await let_time_pass(engine, 61)
    assert not (await submit_one(engine, deduped()))[1]


@pytest.mark.parametrize("end", ["dead", "cancelled"])
@on_the_engine
async def test_a_dead_or_cancelled_task_gives_its_dedupe_key_away(engine: Engine, end: str) -> None:
    first, _ = await submit_one(engine, deduped())
    if end == "dead":
        await engine.finish(await engine.start(first), "bury")
    else:
        await engine.cancel(first)
    second, deduplicated = await submit_one(engine, deduped())
    assert not deduplicated
    assert second != first


@on_the_engine
async def test_a_completed_task_keeps_its_dedupe_key(engine: Engine) -> None:
    first, _ = await submit_one(engine, deduped())
    await engine.finish(await engine.start(first))
    assert await submit_one(engine, deduped()) == (first, True)


@on_the_engine
async def test_a_dead_task_keeps_its_idempotency_key(engine: Engine) -> None:
    first, _ = await submit_one(engine, idempotent())
    await engine.finish(await engine.start(first), "bury")
    assert await submit_one(engine, idempotent()) == (first, True)


@on_the_engine
async def test_a_task_whose_key_a_live_one_has_is_not_revived(engine: Engine) -> None:
    first, _ = await submit_one(engine, deduped())
    await engine.cancel(first)
    second, _ = await submit_one(engine, deduped())
    row = await tasks.revive(engine.pool, first)
    assert row is not None
    assert (row["status"], row["duplicate_of"]) == ("cancelled", second)
    assert await submit_one(engine, deduped()) == (second, True)
    await let_time_pass(engine, 86401)
    assert await engine.revive(first) == "queued", "the key means nothing any more"


@pytest.mark.parametrize("end", ["complete", "bury"])
@on_the_engine
async def test_a_revived_task_takes_its_key_back_from_one_that_has_ended(engine: Engine, end: str) -> None:
    first, _ = await submit_one(engine, deduped())
    await engine.cancel(first)
    second, _ = await submit_one(engine, deduped())
    await engine.finish(await engine.start(second), end)
    assert await engine.revive(first) == "queued"
    assert await submit_one(engine, deduped()) == (first, True)


@on_the_engine
async def test_a_submit_and_a_revive_at_once_leave_one_task_alive(engine: Engine) -> None:
    first, _ = await submit_one(engine, deduped())
    await engine.cancel(first)
    key = "SELECT 1 FROM submission_keys WHERE kind = 'dedupe' FOR UPDATE"
    async with engine.holding(key):
        revived = asyncio.create_task(engine.revive(first))
        await engine.until_waiting(1)
        submitted = asyncio.create_task(submit_one(engine, deduped()))
        await engine.until_waiting(2)
    (alive, is_old), was_revived = await submitted, await revived == "queued"
    assert (alive == first, is_old) == (was_revived, was_revived), "whoever comes second sees the other"
    assert await engine.count("completed_at IS NULL") == 1


@on_the_engine
async def test_a_dependent_whose_key_a_live_one_has_stays_dead(engine: Engine) -> None:
    parent = await engine.submit()
    child, _ = await submit_one(engine, deduped(depends_on=[parent]))
    free = await engine.submit(depends_on=[parent])
    await engine.cancel(parent)
    assert await engine.statuses([child, free]) == ["dead", "dead"]
    again, _ = await submit_one(engine, deduped())
    assert await engine.revive(parent) == "queued"
    assert await engine.statuses([child, free, again]) == ["dead", "blocked", "queued"]


@on_the_engine
async def test_a_revived_task_has_its_key_again_where_nobody_took_it(engine: Engine) -> None:
    first, _ = await submit_one(engine, deduped())
    await engine.cancel(first)
    await engine.revive(first)
    assert await submit_one(engine, deduped()) == (first, True)


@on_the_engine
async def test_an_idempotent_repeat_leaves_the_dedupe_key_alone(engine: Engine) -> None:
    both: dict[str, Any] = {"dedupe_key": "d", "dedupe_ttl_seconds": 100.0}
    first, _ = await submit_one(engine, idempotent(**both))
    await let_time_pass(engine, 101)
    assert await submit_one(engine, idempotent(**both)) == (first, True)
    second, deduplicated = await submit_one(engine, deduped("d"))
    assert (second != first, deduplicated) == (True, False), "its time was over all the same"


@on_the_engine
async def test_an_idempotency_key_stands_for_the_task_that_its_dedupe_key_found(engine: Engine) -> None:
    first, _ = await submit_one(engine, deduped("d"))
    assert await submit_one(engine, idempotent("i", dedupe_key="d")) == (first, True)
    await engine.cancel(first)
    assert await submit_one(engine, idempotent("i", dedupe_key="d")) == (first, True)


# Batches


@on_the_engine
async def test_a_key_repeated_inside_a_batch_comes_to_its_first_task(engine: Engine) -> None:
    batch = [deduped("a"), deduped("b"), deduped("a"), a_submission(), deduped("a")]
    ids = [each.task_id for each in batch]
    assert await submit(engine, *batch) == [
        (ids[0], False), (ids[1], False), (ids[0], True), (ids[3], False), (ids[0], True),
    ]  # fmt: skip
    assert await engine.count("true") == 3


@on_the_engine
async def test_a_batch_finds_what_was_there_before(engine: Engine) -> None:
    first, _ = await submit_one(engine, deduped("a"))
    new = deduped("b")
    answers = await tasks.submit_batch(engine.pool, [deduped("a"), new])
    assert [each[:2] for each in answers] == [(first, True), (new.task_id, False)]


@on_the_engine
async def test_a_batch_without_keys_answers_with_its_ids(engine: Engine) -> None:
    batch = [a_submission(), a_submission()]
    answers = await tasks.submit_batch(engine.pool, batch)
    assert [each[:2] for each in answers] == [(each.task_id, False) for each in batch]
    assert await engine.count("true") == 2


@on_the_engine
async def test_a_refused_batch_takes_no_key(engine: Engine) -> None:
    with pytest.raises(UnknownDependency):
        await submit(engine, deduped("a"), a_submission(depends_on=[NOBODY]))
    await submit_one(engine, idempotent("i"))
    with pytest.raises(KeyReused):
        await submit(engine, idempotent("new", ANOTHER_BODY), idempotent("i", ANOTHER_BODY), deduped("a"))
    assert await engine.count("true") == 1
    assert not (await submit_one(engine, deduped("a")))[1]
    assert not (await submit_one(engine, idempotent("new")))[1]


# Together


@pytest.mark.parametrize("keyed", [idempotent, deduped])
@on_the_engine
async def test_many_at_once_make_one_task(engine: Engine, keyed: Any) -> None:
    async def submit_until_answered() -> tuple[UUID, bool]:
        while True:
            try:
                return await submit_one(engine, keyed())
            except KeyInFlight:
                continue

    await engine.be_connected(9)
    # The first one has the key and waits for the table; the others wait for the key.
    async with engine.holding("LOCK TABLE tasks IN EXCLUSIVE MODE"):
        submits = [asyncio.create_task(submit_until_answered()) for _ in range(8)]
        await engine.until_waiting(8)
    answers = await asyncio.gather(*submits)
    assert len({task_id for task_id, _ in answers}) == 1
    assert [deduplicated for _, deduplicated in answers].count(False) == 1
    assert await engine.count("true") == 1


@on_the_engine
async def test_batches_with_the_same_keys_in_any_order_do_not_lock_each_other_out(engine: Engine) -> None:
    keys = [f"key-{number}" for number in range(30)]
    orders = [keys, keys[::-1], keys[15:] + keys[:15], keys[::2] + keys[1::2]] * 3
    answers = await asyncio.gather(*(submit(engine, *map(deduped, order)) for order in orders))
    found = {
        (key, task_id)
        for order, answer in zip(orders, answers, strict=True)
        for key, (task_id, _) in zip(order, answer, strict=True)
    }
    assert len(found) == 30
    assert await engine.count("true") == 30


@pytest.mark.parametrize("keyed", [idempotent, deduped])
@on_the_engine
async def test_a_key_that_somebody_does_not_let_go_of_is_in_flight(engine: Engine, keyed: Any) -> None:
    kind = "idempotency" if keyed is idempotent else "dedupe"
    take = (
        "INSERT INTO submission_keys (user_id, kind, key, task_id, expires_at) VALUES ('ann', $1, 'k', $2, 'infinity')"
    )
    async with engine.holding(take, kind, NOBODY):
        with pytest.raises(KeyInFlight):
            await asyncio.wait_for(submit_one(engine, keyed()), 20)
    assert await engine.count("true") == 0


@on_the_engine
async def test_a_key_that_is_let_go_of_in_time_is_taken(engine: Engine) -> None:
    take = "INSERT INTO submission_keys (user_id, kind, key, task_id) VALUES ('ann', 'dedupe', 'k', $1)"
    async with engine.holding(take, NOBODY) as other:
        waiting = asyncio.create_task(submit_one(engine, deduped()))
        await engine.until_waiting(1)
        await other.execute("DELETE FROM submission_keys")
    assert (await waiting)[1] is False


# What a user may depend on


@on_the_engine
async def test_a_foreign_task_is_as_if_it_did_not_exist(engine: Engine) -> None:
    foreign = await engine.submit(user_id="bob")
    own = await engine.submit(user_id="ann")
    with pytest.raises(UnknownDependency) as refusal:
        await engine.submit(depends_on=[own, foreign], reach="ann")
    assert refusal.value.missing == [str(foreign)]
    assert await engine.status(await engine.submit(depends_on=[own], reach="ann")) == "blocked"
    assert await engine.status(await engine.submit(depends_on=[own, foreign])) == "blocked", "an admin's"


# Putting away


@on_the_engine
async def test_expired_keys_are_put_away_in_chunks(engine: Engine) -> None:
    for number in range(5):
        await submit_one(engine, deduped(str(number)))
    await submit_one(engine, idempotent("young"))
    await engine.sql(
        "UPDATE submission_keys SET expires_at = clock_timestamp() - interval '2 min' WHERE kind = 'dedupe'"
    )
    removed = [await submission_keys.forget_expired(engine.pool, at_most=2) for _ in range(4)]
    assert removed == [2, 2, 1, 0]
    assert await engine.pool.fetchval("SELECT string_agg(key, ',') FROM submission_keys") == "young"
    assert await engine.count("true") == 6, "the tasks stay"

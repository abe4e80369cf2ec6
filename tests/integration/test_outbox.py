"""Moves reach features through the outbox: each exactly once, in order, whatever else fails or waits."""

import asyncio
from uuid import uuid4

import asyncpg
import pytest

from tests.support.engine.memory import REMEMBERED
from tests.support.engine.outbox import WRITE, Ledger, handled, pending, relays, with_a_ledger
from tests.support.engine.store import RULES, Engine, an_ending, on_the_engine, until
from windlass.services.orchestrator import relay
from windlass.shared.features import catching_up
from windlass.shared.features.catching_up import CatchUp
from windlass.shared.features.feature import ROWS_AT_ONCE
from windlass.shared.features.handling import handle_pending
from windlass.shared.store import outbox, tasks

FAR = 3600.0


async def all_handled(engine: Engine) -> None:
    async def is_empty() -> bool:
        return await pending(engine) == 0

    await until(is_empty, seconds=20)


@on_the_engine
async def test_a_call_writes_a_row_for_each_subscribed_move_and_notifies_once(engine: Engine) -> None:
    plain = [await engine.running() for _ in range(2)]
    remembered = [await engine.running(**REMEMBERED) for _ in range(3)]
    async with engine.listening(outbox.CHANNEL) as heard:
        await tasks.end(engine.pool, [an_ending(each, "complete") for each in plain], RULES)
    assert (heard, await pending(engine)) == ([], 0)
    async with engine.listening(outbox.CHANNEL) as heard:
        await tasks.end(engine.pool, [an_ending(each, "complete") for each in remembered], RULES)
    assert len(heard) == 1
    rows = await engine.pool.fetch("SELECT feature, subject, task_id, life, move, status FROM outbox ORDER BY id")
    ids = sorted(each.task_id for each in remembered)
    assert [tuple(row) for row in rows] == [("memory", each, each, 1, "complete", "completed") for each in ids]


@on_the_engine
async def test_an_end_that_is_rolled_back_writes_no_row(engine: Engine) -> None:
    attempt = await engine.running(**REMEMBERED)
    async with engine.pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await tasks.end(connection, [an_ending(attempt, "complete")], RULES)
        assert await connection.fetchval("SELECT count(*) FROM outbox") == 1
        await transaction.rollback()
    assert await pending(engine) == 0


@on_the_engine
async def test_two_orchestrators_handle_each_row_once_and_in_order(engine: Engine) -> None:
    await with_a_ledger(engine)
    ledger = Ledger(subjects_at_once=3)
    subjects = [uuid4() for _ in range(8)]
    async with relays(engine, ledger.feature, number=2):
        for seq in range(1, 26):
            await asyncio.gather(*(ledger.write(engine, subject, first=seq) for subject in subjects))
        await all_handled(engine)
    for subject in subjects:
        assert await handled(engine, subject) == list(range(1, 26))


@on_the_engine
async def test_a_row_of_a_transaction_that_began_long_ago_is_found_at_once(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its id and its transaction are older than rows that were handled long before it was committed."""
    monkeypatch.setattr(relay, "FULL_LOOK_SECONDS", FAR)
    await with_a_ledger(engine)
    ledger, late = Ledger(), uuid4()
    async with relays(engine, ledger.feature):
        async with engine.holding(WRITE, "test", late, 1, 1):
            for _ in range(5):
                await ledger.write(engine)
                await asyncio.sleep(0.02)  # one look after the other

            async def others_are_handled() -> bool:
                return len(await handled(engine)) == 5

            await until(others_are_handled)
            assert await handled(engine, late) == []
        await engine.sql(f"NOTIFY {outbox.CHANNEL}")
        await all_handled(engine)
    assert await handled(engine, late) == [1]


@on_the_engine
async def test_rows_of_a_restored_database_are_found(engine: Engine) -> None:
    """Their transactions are those of another server: older or newer than all of this one's."""
    await with_a_ledger(engine)
    ledger = Ledger()
    old, new = [await ledger.write(engine, wakes=False) for _ in range(2)]
    await engine.sql("UPDATE outbox SET xid = '3' WHERE subject = $1", old)
    await engine.sql("UPDATE outbox SET xid = '9000000000000000' WHERE subject = $1", new)
    catch_up = CatchUp(engine.pool, ledger.feature)
    await catch_up()
    assert len(await handled(engine)) == 2
    again = [await ledger.write(engine, wakes=False) for _ in range(2)]
    await engine.sql("UPDATE outbox SET xid = '9000000000000000' WHERE subject = $1", again[0])
    await catch_up()
    assert len(await handled(engine)) == 4


@on_the_engine
async def test_a_full_look_finds_rows_that_looks_for_new_ones_skip(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the database is replaced by an older one while processes run."""
    monkeypatch.setattr(relay, "FULL_LOOK_SECONDS", 0.1)
    monkeypatch.setattr(catching_up, "FULL_LOOK_SECONDS", 0.0)
    await with_a_ledger(engine)
    ledger, skipped = Ledger(), "UPDATE outbox SET xid = '3'"
    catch_up = CatchUp(engine.pool, ledger.feature)
    await catch_up()
    async with relays(engine, ledger.feature):
        await ledger.write(engine)
        await all_handled(engine)
        async with engine.pool.acquire() as connection, connection.transaction():
            await connection.execute(WRITE, "test", uuid4(), 1, 1)
            await connection.execute(skipped)
        await all_handled(engine)
    await ledger.write(engine, wakes=False)
    await engine.sql(skipped)
    await catch_up()
    assert await pending(engine) == 0


@on_the_engine
async def test_a_failing_subject_backs_off_alone_and_its_newer_rows_wait_for_it(engine: Engine) -> None:
    await with_a_ledger(engine)
    ledger = Ledger(subjects_at_once=10)
    bad = await ledger.write(engine)
    ledger.refused = {bad}
    async with relays(engine, ledger.feature):
        good = [await ledger.write(engine) for _ in range(20)]
        await ledger.write(engine, bad, first=2)

        async def good_ones_are_handled() -> bool:
            return [await handled(engine, subject) for subject in good] == [[1]] * len(good)

        await until(good_ones_are_handled, seconds=10)
        assert await handled(engine, bad) == []
        state = await engine.pool.fetchrow("SELECT subject, tries >= 1 AS tried, error FROM outbox_subjects")
        assert state is not None
        assert (state["subject"], state["tried"], state["error"]) == (bad, True, "refused")
        ledger.refused = set()
        await engine.sql("UPDATE outbox_subjects SET next_try_at = clock_timestamp()")
        await all_handled(engine)
    assert await handled(engine, bad) == [1, 2]
    assert await engine.pool.fetchval("SELECT count(*) FROM outbox_subjects") == 0


@on_the_engine
async def test_tries_become_rarer_up_to_an_hour(engine: Engine) -> None:
    subject = await Ledger().write(engine)
    pauses = [round(await outbox.back_off(engine.pool, "test", subject, "refused")) for _ in range(14)]
    assert pauses[:4] == [1, 2, 4, 8]
    assert pauses[-1] == 3600


@on_the_engine
async def test_a_subject_with_many_rows_takes_turns_with_others(engine: Engine) -> None:
    await with_a_ledger(engine)
    ledger = Ledger()
    hot = await ledger.write(engine, number=60 * ROWS_AT_ONCE, wakes=False)
    others = [await ledger.write(engine, wakes=False) for _ in range(20)]
    async with relays(engine, ledger.feature):
        await all_handled(engine)
    assert await handled(engine, hot) == list(range(1, 60 * ROWS_AT_ONCE + 1))
    places = await engine.pool.fetch("SELECT place FROM ledger WHERE subject = ANY ($1)", others)
    assert max(row["place"] for row in places) < 50 * ROWS_AT_ONCE, "long before the hot one has no more"


@on_the_engine
async def test_deadlocks_and_lock_timeouts_are_repeated_and_are_no_failures(engine: Engine) -> None:
    await with_a_ledger(engine)
    ledger = Ledger()
    async with relays(engine, ledger.feature), engine.holding("LOCK TABLE ledger IN ACCESS EXCLUSIVE MODE"):
        await ledger.write(engine)
        await asyncio.sleep(1.2)  # two lock timeouts
    assert await engine.pool.fetchval("SELECT count(*) FROM outbox_subjects") == 0
    async with relays(engine, ledger.feature):
        await all_handled(engine)
    assert await handled(engine) == [1]


@on_the_engine
async def test_a_process_that_stops_between_preparing_and_executing_is_ended(engine: Engine) -> None:
    """Postgres' own timeout does not count it as idle, so its locks would stay for ever."""
    settings = {"application_name": "windlass-orchestrator frozen", "idle_in_transaction_session_timeout": "100ms"}
    frozen = await asyncpg.connect(engine.database_url, server_settings=settings)
    subject = uuid4()
    async with asyncio.timeout(60):
        transaction = frozen.transaction()
        await transaction.start()
        await outbox.lock(frozen, "memory", [subject])
        await frozen.prepare("SELECT $1::int + 1")
        while not await outbox.end_frozen(engine.pool, after_seconds=0.5):
            assert not await outbox.try_lock(engine.pool, "memory", [subject])
            await asyncio.sleep(0.05)
        await outbox.lock(engine.pool, "memory", [subject])
    frozen.terminate()


@on_the_engine
async def test_a_look_reads_none_of_the_rows_that_went_through_while_a_snapshot_is_open(engine: Engine) -> None:
    await with_a_ledger(engine)
    ledger = Ledger(subjects_at_once=100)
    catch_up = CatchUp(engine.pool, ledger.feature)
    async with engine.pool.acquire() as other:
        transaction = other.transaction(isolation="repeatable_read")
        await transaction.start()
        await other.fetchval("SELECT count(*) FROM outbox")
        await engine.sql(
            """
            INSERT INTO outbox (feature, subject, task_id, life, seq, move, status)
            SELECT 'test', id, id, 1, 1, 'm', 's'
            FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, 1500)) AS s
            """
        )
        await catch_up()
        assert await pending(engine) == 0
        line = (await outbox.new_rows(engine.pool, since=0, at_most=1)).line
        await ledger.write(engine, wakes=False)
        async with engine.pool.acquire() as looking:
            entries = "SELECT coalesce(pg_stat_get_xact_tuples_returned('outbox_xid'::regclass), 0)"
            before = await looking.fetchval(entries)
            async with looking.transaction():
                found = await outbox.new_rows(looking, since=line, at_most=1000)
                read = await looking.fetchval(entries) - before
        assert len(found.keys) == 1
        assert read < 10
        await transaction.rollback()


@on_the_engine
async def test_a_read_waits_for_what_another_process_is_handling(engine: Engine) -> None:
    await with_a_ledger(engine)
    ledger = Ledger()
    subject = await ledger.write(engine, wakes=False)
    async with engine.pool.acquire() as orchestrator:
        transaction = orchestrator.transaction()
        await transaction.start()
        await outbox.try_lock(orchestrator, "test", [subject])
        (move,) = await outbox.rows(orchestrator, "test", [subject], at_most=10)
        await ledger.handle(orchestrator, [move])
        reading = asyncio.create_task(CatchUp(engine.pool, ledger.feature)())
        await engine.until_waiting(1)
        assert (await handle_pending(engine.pool, ledger.feature, [subject])).busy == [subject]
        await outbox.delete(orchestrator, "test", [subject], [move])
        await transaction.commit()
        await reading
    assert await handled(engine) == [1]


@on_the_engine
async def test_a_read_handles_no_more_than_its_bound_and_the_next_one_continues(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catching_up, "MOST_ROWS", 10)
    monkeypatch.setattr(catching_up, "SUBJECTS_OF_A_PAGE", 7)
    await with_a_ledger(engine)
    ledger = Ledger()
    for _ in range(25):
        await ledger.write(engine, wakes=False)
    catch_up, left = CatchUp(engine.pool, ledger.feature), []
    for _ in range(3):
        await catch_up()
        left.append(await pending(engine))
    assert left == [15, 5, 0]


@on_the_engine
async def test_a_read_goes_ahead_when_the_feature_fails(engine: Engine) -> None:
    await with_a_ledger(engine)
    ledger = Ledger(subjects_at_once=10)
    bad, good = await ledger.write(engine), await ledger.write(engine)
    ledger.refused = {bad}
    await CatchUp(engine.pool, ledger.feature).before_read()
    assert (await handled(engine, good), await handled(engine, bad)) == ([1], [])
    await engine.sql("ALTER TABLE outbox_subjects RENAME TO away")
    try:
        with pytest.raises(asyncpg.UndefinedTableError):
            await CatchUp(engine.pool, ledger.feature).before_read()
    finally:
        await engine.sql("ALTER TABLE away RENAME TO outbox_subjects")

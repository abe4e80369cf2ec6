"""Every move of a task is told to whom it concerns, and none fails because of what it tells."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import asyncpg
import pytest

from tests.support.engine.store import RULES, Engine, an_ending, an_engine
from tests.support.engine.telling import GOOD, a_database_with_tellers, heard, moves_heard, replace_teller
from tests.support.servers.databases import execute
from tests.support.servers.private_servers import Servers
from windlass.services.janitor.duties.untold import tell_again
from windlass.shared import db
from windlass.shared.concerns import Concern
from windlass.shared.filters import Filter
from windlass.shared.store import functions, tasks
from windlass.shared.store.functions import named
from windlass.shared.store.operating import cluster_state
from windlass.shared.store.tasks import Claim, bulk, untold
from windlass.shared.store.tellers import TELLERS, counted_alone

WORKFLOW, KEY = Concern.WORKFLOW.value, Concern.KEY.value

Test = Callable[[Engine], Awaitable[None]]


@pytest.fixture(scope="module")
def telling_url(servers: Servers, migrated_template: str) -> Iterator[str]:
    with a_database_with_tellers(
        servers.database_url, migrated_template, {Concern.WORKFLOW: GOOD, Concern.KEY: GOOD}
    ) as url:
        yield url


def on(url: str, test: Test) -> None:
    """With tellers that note all they are told, and nothing told yet."""
    execute(url, "DELETE FROM heard; DELETE FROM subject; DELETE FROM untold; DELETE FROM tasks; DELETE FROM providers")

    async def run() -> None:
        async with an_engine(url) as engine:
            for concern in (Concern.WORKFLOW, Concern.KEY):
                await replace_teller(engine, concern, GOOD)
            await test(engine)

    asyncio.run(run())


def test_every_way_out_of_running_is_told(telling_url: str) -> None:
    async def test(engine: Engine) -> None:
        for transition, status in [
            ("complete", "completed"),
            ("retry", "retrying"),
            ("bury", "dead"),
            ("interrupt", "queued"),
        ]:
            attempt = await engine.running(concerns=WORKFLOW)
            assert attempt.concerns == WORKFLOW
            await engine.finish(attempt, transition)
            assert await moves_heard(engine, attempt.task_id) == [("submit", "queued"), (transition, status)]
        cancelled = await engine.running(concerns=WORKFLOW)
        await engine.cancel(cancelled.task_id)
        assert len(await moves_heard(engine, cancelled.task_id)) == 1, "it has only been asked for"
        await engine.finish(cancelled, "interrupt")
        assert (await moves_heard(engine, cancelled.task_id))[1:] == [("cancel", "cancelled")]
        lost = await engine.running(concerns=WORKFLOW)
        await engine.lapse(lost.task_id)
        await tasks.stall(engine.pool)
        assert (await moves_heard(engine, lost.task_id))[1:] == [("stall", "retrying")]
        to_be_cancelled = await engine.running(concerns=WORKFLOW)
        await engine.cancel(to_be_cancelled.task_id)
        await engine.lapse(to_be_cancelled.task_id)
        await tasks.stall(engine.pool)
        assert (await moves_heard(engine, to_be_cancelled.task_id))[1:] == [("cancel", "cancelled")]

    on(telling_url, test)


def test_every_other_end_is_told_and_every_new_life(telling_url: str) -> None:
    async def test(engine: Engine) -> None:
        parent = await engine.submit()
        child = await engine.submit(depends_on=[parent], concerns=WORKFLOW)
        grandchild = await engine.submit(depends_on=[child], concerns=WORKFLOW)
        await engine.cancel(parent)
        for each in (child, grandchild):
            assert await moves_heard(engine, each) == [("submit", "blocked"), ("bury", "dead")]
        assert await heard(engine, parent) == [], "it concerns nobody"

        await engine.revive(parent)
        assert (await moves_heard(engine, child))[2:] == [("revive", "blocked")]
        assert [move["life"] for move in await heard(engine, child)] == [1, 1, 2]
        assert (await engine.row(child)).life == 2

        late = await engine.submit(depends_on=[await engine.dead()], concerns=WORKFLOW)
        assert await moves_heard(engine, late) == [("submit", "blocked"), ("bury", "dead")]
        old = await engine.submit(concerns=WORKFLOW)
        await engine.outlive(old)
        await tasks.expire(engine.pool)
        assert (await moves_heard(engine, old))[1:] == [("bury", "dead")]
        waiting = await engine.submit(concerns=WORKFLOW)
        await engine.cancel(waiting)
        assert (await moves_heard(engine, waiting))[1:] == [("cancel", "cancelled")]

    on(telling_url, test)


def test_what_is_told_is_the_event_that_was_written(telling_url: str) -> None:
    async def test(engine: Engine) -> None:
        attempt = await engine.running(concerns=WORKFLOW)
        await engine.finish(attempt, events=[{"type": "output", "data": {"text": "bye"}}])
        (_, move) = await heard(engine, attempt.task_id)
        event = (await engine.history(attempt.task_id))[-1]
        assert (move["seq"], move["move"]) == (event.seq, event.type)
        assert move["concerns"] == WORKFLOW
        at = await engine.pool.fetchval("SELECT $1::text::timestamptz", move["at"])
        assert at == event.at

    on(telling_url, test)


def test_ends_in_bulk_are_told(telling_url: str) -> None:
    async def test(engine: Engine) -> None:
        ids = await engine.submit_many(3, concerns=WORKFLOW)
        job = await bulk.accept(engine.pool, ids[0], "cancel", Filter(), matched=3, user_id="ann", scope_user_id=None)
        assert await bulk.advance(engine.pool, job, await bulk.next_chunk(engine.pool, job)) is not None
        for each in ids:
            assert (await moves_heard(engine, each))[1:] == [("cancel", "cancelled")]

    on(telling_url, test)


def test_each_teller_hears_of_its_own_concern_alone(telling_url: str) -> None:
    async def test(engine: Engine) -> None:
        both = await engine.submit(concerns=WORKFLOW | KEY)
        one = await engine.submit(concerns=KEY)
        nobody_yet = await engine.submit(concerns=Concern.MEMORY.value)
        for each in (both, one, nobody_yet):
            await engine.cancel(each)
        rows = await engine.pool.fetch("SELECT DISTINCT teller, task_id FROM heard ORDER BY teller, task_id")
        assert [(row["teller"], row["task_id"]) for row in rows] == [
            ("key", both),
            ("key", one),
            ("workflow", both),
        ]
        assert await engine.status(nobody_yet) == "cancelled"
        assert await untold.count(engine.pool) == 0

    on(telling_url, test)


FAULTS = {
    "a constraint": "INSERT INTO subject VALUES ('one'), ('one')",
    "a division": "PERFORM 1 / (jsonb_array_length(moves) * 0)",
    "a missing table": "INSERT INTO nowhere VALUES (1)",
    "its own exception": "RAISE EXCEPTION 'no'",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_no_end_is_changed_by_a_teller_that_fails(telling_url: str, fault: str) -> None:
    """And what another has been told of the same moves stays."""

    async def test(engine: Engine) -> None:
        ids = await engine.submit_many(200, concerns=WORKFLOW | KEY)
        claims = [Claim(each, each) for each in ids]
        attempts = await tasks.claim(engine.pool, "worker-1", claims, 30)
        await engine.sql("DELETE FROM heard")
        await replace_teller(engine, Concern.WORKFLOW, GOOD + "; " + FAULTS[fault])
        endings = [an_ending(each, "complete", result={"paid": True}) for each in attempts]  # type: ignore[arg-type]
        assert await tasks.end(engine.pool, endings, RULES) == ["completed"] * 200
        assert await engine.count("status = 'completed' AND result = '{\"paid\": true}' AND error IS NULL") == 200
        rows = await engine.pool.fetch("SELECT * FROM untold ORDER BY task_id")
        assert [row["task_id"] for row in rows] == ids
        assert {(row["subject"], row["seq"], row["move"]["status"]) for row in rows} == {("workflow", 3, "completed")}
        assert all("(" in row["error"] for row in rows), "with its SQLSTATE"
        told = await engine.pool.fetch("SELECT DISTINCT teller FROM heard")
        assert [row["teller"] for row in told] == ["key"], "what the failed one had done is undone"
        assert await untold.count(engine.pool) == 200

    on(telling_url, test)


@pytest.mark.parametrize(
    ("error", "repeated"),
    [
        ("deadlock_detected", asyncpg.DeadlockDetectedError),
        ("lock_not_available", asyncpg.LockNotAvailableError),
        ("serialization_failure", asyncpg.SerializationError),
        ("query_canceled", asyncpg.QueryCanceledError),
        ("disk_full", asyncpg.DiskFullError),
    ],
)
def test_what_is_over_when_the_call_is_repeated_passes_through(
    telling_url: str, error: str, repeated: type[Exception]
) -> None:
    async def test(engine: Engine) -> None:
        attempt = await engine.running(concerns=WORKFLOW)
        await replace_teller(engine, Concern.WORKFLOW, f"RAISE {error}")
        with pytest.raises(repeated) as caught:
            await engine.finish(attempt)
        assert isinstance(caught.value, db.AWAY_OR_BUSY), "so that the writer repeats it"
        assert await engine.status(attempt.task_id) == "running"
        assert await untold.count(engine.pool) == 0
        await replace_teller(engine, Concern.WORKFLOW, GOOD)
        assert await engine.finish(attempt) == "completed"
        assert (await moves_heard(engine, attempt.task_id))[1:] == [("complete", "completed")]

    on(telling_url, test)


def test_the_janitor_tells_the_untold_again_one_by_one(telling_url: str) -> None:
    """What was only in one call with something faulty is told; the faulty waits, longer each time."""

    async def test(engine: Engine) -> None:
        await replace_teller(engine, Concern.WORKFLOW, FAULTS["a division"])
        good, bad = await engine.submit_many(2, concerns=WORKFLOW)
        only_the_bad = f"IF moves -> 0 ->> 'task_id' = '{bad}' THEN RAISE EXCEPTION 'still'; END IF; "
        await replace_teller(engine, Concern.WORKFLOW, only_the_bad + GOOD)
        await tell_again(engine.pool)
        assert await moves_heard(engine, good) == [("submit", "queued")]
        (row,) = await engine.pool.fetch("SELECT *, tell_at - clock_timestamp() AS wait FROM untold")
        assert (row["task_id"], row["tries"], row["error"]) == (bad, 1, "still (P0001)")
        assert 20 < row["wait"].total_seconds() <= 30
        await tell_again(engine.pool)
        assert await engine.pool.fetchval("SELECT tries FROM untold") == 1, "its time has not come"

        for tries, seconds in ((1, 60), (9, 3600)):
            await engine.sql("UPDATE untold SET tell_at = clock_timestamp(), tries = $1", tries)
            await tell_again(engine.pool)
            (row,) = await engine.pool.fetch("SELECT tries, tell_at - clock_timestamp() AS wait FROM untold")
            assert row["tries"] == tries + 1
            assert seconds - 10 < row["wait"].total_seconds() <= seconds

        await replace_teller(engine, Concern.WORKFLOW, GOOD)
        await engine.sql("UPDATE untold SET tell_at = clock_timestamp()")
        await tell_again(engine.pool)
        assert await moves_heard(engine, bad) == [("submit", "queued")]
        assert await untold.count(engine.pool) == 0

    on(telling_url, test)


def test_what_somebody_has_locked_is_told_another_time_and_nobody_waits_for_it(telling_url: str) -> None:
    async def test(engine: Engine) -> None:
        await replace_teller(engine, Concern.WORKFLOW, FAULTS["a division"])
        locked, free = await engine.submit_many(2, concerns=WORKFLOW)
        await engine.sql("INSERT INTO subject VALUES ($1)", str(locked))
        lock = "PERFORM 1 FROM subject WHERE name = moves -> 0 ->> 'task_id' FOR UPDATE NOWAIT; "
        await replace_teller(engine, Concern.WORKFLOW, lock + GOOD)
        async with engine.holding("SELECT * FROM subject FOR UPDATE"):
            await tell_again(engine.pool)
        assert await moves_heard(engine, free) == [("submit", "queued")]
        assert await engine.pool.fetchval("SELECT (task_id, tries) = ($1, 0) FROM untold", locked)
        await tell_again(engine.pool)
        assert await untold.count(engine.pool) == 0

    on(telling_url, test)


def test_the_metrics_say_how_many_are_untold(telling_url: str) -> None:
    async def test(engine: Engine) -> None:
        await replace_teller(engine, Concern.WORKFLOW, FAULTS["a division"])
        await engine.submit_many(3, concerns=WORKFLOW)
        state = await cluster_state.read(engine.pool, workers_within_seconds=30, janitors_within_seconds=30)
        assert state.untold == 3

    on(telling_url, test)


COUNT_CALLS = """
SELECT coalesce(sum(calls), 0)::int FROM pg_stat_xact_user_functions WHERE funcname IN ('tell_moves', 'tell')
"""


async def calls_of_tell_moves(connection: asyncpg.Connection, statement: str, *values: object) -> int:
    """How often it is called by a statement, which is undone."""
    transaction = connection.transaction()
    await transaction.start()
    before = await connection.fetchval(COUNT_CALLS)
    await connection.fetch(statement, *values)
    after = await connection.fetchval(COUNT_CALLS)
    await transaction.rollback()
    return int(after - before)


ANY_END = "SELECT * FROM {}($1::text::jsonb, $2::text::jsonb)"
TELLS_NOBODY = "end_tasks_and_tell_nobody"
STILL = """
DO $$ DECLARE t text; BEGIN
    FOR t IN SELECT oid::regclass FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace LOOP
        EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = off)', t);
    END LOOP;
END $$
"""
"""Nobody analyses a table between two ends that are compared, which might be planned differently from then on."""

READ = """
SELECT relname, coalesce(seq_scan, 0) + coalesce(idx_scan, 0) AS scans,
       coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) + n_tup_ins + n_tup_upd + n_tup_del AS rows
FROM pg_stat_xact_user_tables ORDER BY relname
"""
"""Without the catalogue: what of that is read anew is up to whoever else is busy on this server, whose changes make
a session forget what it knew."""


def test_where_nobody_is_concerned_nobody_is_asked(telling_url: str) -> None:
    async def test(engine: Engine) -> None:
        plain, concerned = await engine.running(), await engine.running(concerns=WORKFLOW)
        connection = await asyncpg.connect(engine.database_url, server_settings={"track_functions": "all"})
        try:
            for attempt, calls in ((plain, 0), (concerned, 2)):
                ending = db.as_json([an_ending(attempt, "complete")])
                end = ANY_END.format(named("end_tasks"))
                assert await calls_of_tell_moves(connection, end, ending, db.as_json(RULES)) == calls
                cancel = f"SELECT * FROM {named('cancel_tasks')}($1)"
                waiting = await engine.submit(concerns=attempt.concerns)
                assert await calls_of_tell_moves(connection, cancel, [waiting]) == calls
        finally:
            await connection.close()

    on(telling_url, test)


def without_telling() -> str:
    """The function that ends tasks, as if nobody were ever told."""
    of_many, end_tasks, tell_moves, move_of = map(
        named, ("tell_workflow_of_many", "end_tasks", "tell_moves", "move_of")
    )
    call = f"""
        IF counted IS NOT NULL THEN
            PERFORM {of_many}(counted, seqs, 'complete', moment);
        END IF;
        IF moves IS NOT NULL THEN
            PERFORM {tell_moves}(moves);
        END IF;"""
    alone = f"m.via = 'complete' AND {counted_alone('m.told', TELLERS)}"
    move = f"{move_of}(m.task_id, m.last_seq, m.life, m.told, m.via, m.status, moment)"
    gathered = f""",
           array_agg(m.task_id) FILTER (WHERE {alone}),
           array_agg(m.last_seq) FILTER (WHERE {alone}),
           jsonb_agg({move})
           FILTER (WHERE m.told <> 0 AND NOT ({alone}))"""
    into = {", woken, counted, seqs, moves\n": ", woken\n"}
    changes = {call: "", gathered: "", **into, f"{end_tasks}(": f"{TELLS_NOBODY}("}
    (definition,) = [each for each in functions.statements() if each.startswith(f"CREATE FUNCTION {end_tasks}(")]
    for old, new in changes.items():
        assert definition.count(old) == 1, old
        definition = definition.replace(old, new)
    return definition


def test_the_end_of_a_plain_task_reads_no_more_than_if_nobody_were_ever_told(telling_url: str) -> None:
    execute(telling_url, STILL)
    execute(telling_url, f"DROP FUNCTION IF EXISTS {TELLS_NOBODY}")
    execute(telling_url, without_telling())

    async def test(engine: Engine) -> None:
        attempts = [await engine.start(task_id) for task_id in await engine.submit_many(20)]
        plain = db.as_json([an_ending(each, "complete") for each in attempts])
        concerned = db.as_json([an_ending(await engine.running(concerns=WORKFLOW), "complete")])

        async def reads(connection: asyncpg.Connection, function: str, endings: str) -> list[tuple[str, int, int]]:
            """Of an end of all of them, which is undone: how often each table is looked into, and how many rows
            are read and written."""
            transaction = connection.transaction()
            await transaction.start()
            before = {row["relname"]: row for row in await connection.fetch(READ)}
            await connection.fetch(ANY_END.format(function), endings, db.as_json(RULES))
            after = await connection.fetch(READ)
            await transaction.rollback()
            none = {"scans": 0, "rows": 0}
            counted = [
                (row["relname"], *(int(row[each] - before.get(row["relname"], none)[each]) for each in none))
                for row in after
            ]
            return [(table, scans, rows) for table, scans, rows in counted if scans or rows]

        connection = await asyncpg.connect(engine.database_url)
        try:
            # In turn, until plans are what they stay.
            read = [
                (await reads(connection, TELLS_NOBODY, plain), await reads(connection, named("end_tasks"), plain))
                for _ in range(9)
            ][7:]
            for _ in range(2):
                unheard = await reads(connection, TELLS_NOBODY, concerned)
                heard = await reads(connection, named("end_tasks"), concerned)
        finally:
            await connection.close()
        for without, with_telling in read:
            assert "tasks" in {table for table, _, _ in without}
            assert with_telling == without
        assert heard != unheard, "else nothing would be proved"

    on(telling_url, test)

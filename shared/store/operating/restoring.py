"""What rows say wrongly after a restore from a backup, and how they are put right: all in the caller's transaction."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.sql_fragments import words
from windlass.shared.states import LIVE
from windlass.shared.store.flow_control.flow import Rules
from windlass.shared.store.reading.commit_order import Position
from windlass.shared.store.record import Record, fetch
from windlass.shared.store.rows import TaskRow
from windlass.shared.store.tasks import Ending, end

ACTION = "after-restore"
"""Under this name the audit log keeps that it was done, and as which transaction."""

SEQ_STEP = 1_000_000
"""More events than a task can have had since the backup: at four a second, those of three days."""

ATTEMPT_STEP = 100
"""More attempts than a task can have had since. Files bear the number of the attempt that stored them."""

NUMBER_STEP = 1_000_000
"""More rows than can have been added since to a table whose rows Postgres numbers."""

SMALLEST_XID = 3
"""The first that Postgres gives to an ordinary transaction."""

WHY = "restored from a backup: whatever happened after it is not known here"


class Connected(Record):
    """Processes of one name that are connected."""

    name: str
    connections: int


class HeardOf(Record):
    """A process that has said something lately."""

    name: str
    seconds_ago: float


class Restart(Record):
    """What restarts a sequence further on."""

    statement: str


class OpenOrder(Record):
    """An order that had not ended."""

    provider: str
    task_id: UUID
    generation_id: UUID
    status: str
    job_id: str | None
    ordered_at: datetime


class PaidProvider(Record):
    """Who is paid for each order, and how many orders and tasks without one there are."""

    name: str
    actor: str
    open_orders: int
    unordered: int


async def hold_still(db: Database) -> None:
    """Nobody else writes to tasks until this transaction has ended, however long it takes."""
    await db.execute("SET LOCAL statement_timeout = 0")
    await db.execute("LOCK TABLE tasks IN SHARE ROW EXCLUSIVE MODE")


async def connected(db: Database) -> list[Connected]:
    """The processes of Windlass that are connected to this database, but for the caller: `name, connections`."""
    return await fetch(
        db,
        Connected,
        """
        SELECT split_part(application_name, ' ', 1) AS name, count(*) AS connections FROM pg_stat_activity
        WHERE datname = current_database() AND application_name LIKE 'windlass-%' AND pid <> pg_backend_pid()
        GROUP BY 1 ORDER BY 1
        """,
    )


async def heard_of(db: Database, *, within_seconds: float) -> list[HeardOf]:
    """Workers, dispatchers and janitors that have said something so lately: `name, seconds_ago`."""
    return await fetch(
        db,
        HeardOf,
        """
        SELECT name, extract(epoch FROM clock_timestamp() - heard_at)::float AS seconds_ago FROM (
            SELECT 'worker ' || worker_id AS name, heartbeat_at AS heard_at FROM workers
            WHERE state IN ('active', 'stopping')
            UNION ALL SELECT service || ' ' || instance_id, reported_at FROM service_reports
        ) AS said
        WHERE heard_at > clock_timestamp() - make_interval(secs => $1) ORDER BY 1
        """,
        within_seconds,
    )


async def newest_word(db: Database) -> datetime | None:
    """When the last thing happened that these rows know of: about the moment of the backup."""
    moment: datetime | None = await db.fetchval(
        """
        SELECT greatest(
            (SELECT at FROM task_events ORDER BY xid DESC, task_id DESC, seq DESC LIMIT 1),
            (SELECT max(heartbeat_at) FROM workers),
            (SELECT max(reported_at) FROM service_reports))
        """
    )
    return moment


async def now(db: Database) -> datetime:
    moment: datetime = await db.fetchval("SELECT clock_timestamp()")
    return moment


async def renumber_transactions(db: Database) -> int:
    """Where events bear numbers that this server's transactions have yet to reach, since another server wrote them, all
    of them get the smallest. Else what happens now would come before what happened then. Returns how many there are."""
    status = await db.execute(
        f"""
        UPDATE task_events SET xid = '{SMALLEST_XID}'
        WHERE EXISTS (SELECT FROM task_events ahead WHERE ahead.xid >= pg_current_xact_id())
        """  # noqa: S608 - a constant
    )
    return _count(status)


async def move_on(db: Database, *, all_of_them: bool) -> list[TaskRow]:
    """Takes every live task beyond whatever may have become of it since the backup: a `seq` that no client has seen,
    an attempt that no worker has had, and another token in place of one that a worker may still hold. Its history
    says why. Returns `task_id, status, attempt, claim_token` of each.

    Those that nothing has happened to since they were moved on are left as they are, unless all of them are meant.
    """
    return await fetch(
        db,
        TaskRow,
        f"""
        WITH outdated AS (
            SELECT t.task_id FROM tasks t
            WHERE t.status IN {words(LIVE)} AND ($4 OR NOT EXISTS (
                SELECT FROM task_events e JOIN task_events last ON last.task_id = e.task_id AND last.xid = e.xid
                WHERE e.task_id = t.task_id AND e.type = 'restore' AND e.seq >= t.last_seq - 1
                  AND last.seq = t.last_seq))
        ), moved AS (
            UPDATE tasks t SET
                last_seq = t.last_seq + $1, attempt = t.attempt + CASE WHEN t.attempt > 0 THEN $2 ELSE 0 END,
                claim_token = CASE t.status WHEN 'running' THEN gen_random_uuid() END,
                updated_at = clock_timestamp()
            FROM outdated o WHERE t.task_id = o.task_id
            RETURNING t.task_id, t.status, t.attempt, t.claim_token, t.last_seq
        ), events AS (
            INSERT INTO task_events (task_id, seq, type, attempt, data)
            SELECT m.task_id, m.last_seq, 'restore', m.attempt,
                   jsonb_build_object('status', m.status, 'reason', $3::text)
            FROM moved m
        )
        SELECT task_id, status, attempt, claim_token FROM moved
        """,  # noqa: S608 - the states' own words
        SEQ_STEP,
        ATTEMPT_STEP,
        WHY,
        all_of_them,
    )


async def give_back(db: Database, taken: Sequence[TaskRow], rules: Rules) -> None:
    """Interrupts the running ones among the tasks that were moved on, under the tokens that they have now."""
    running = [
        Ending(row.task_id, row.attempt, row.claim_token, "interrupt", proof={"reason": WHY})
        for row in taken
        if row.claim_token is not None  # those that run
    ]
    if running:
        await end(db, running, rules)


async def forget_processes(db: Database) -> tuple[int, int]:
    """Those that were there at the time of the backup: how many workers, and how many reports of other services."""
    return _count(await db.execute("DELETE FROM workers")), _count(await db.execute("DELETE FROM service_reports"))


async def advance_numbers(db: Database) -> int:
    """Takes every number that Postgres gives out beyond those that may have been seen. Returns how many there are.

    Unlike `setval`, restarting a sequence is undone with its transaction.
    """
    statements = await fetch(
        db,
        Restart,
        """
        SELECT format('ALTER SEQUENCE %I.%I RESTART WITH %s', schemaname, sequencename,
                      coalesce(last_value, 0) + $1::bigint) AS statement
        FROM pg_sequences WHERE schemaname = current_schema()
        """,
        NUMBER_STEP,
    )
    for row in statements:
        await db.execute(row.statement)
    return len(statements)


async def open_orders(db: Database) -> list[OpenOrder]:
    """What was ordered and had not ended at the time of the backup: `provider, task_id, generation_id, status, job_id,
    ordered_at`."""
    return await fetch(
        db,
        OpenOrder,
        """
        SELECT g.provider, g.task_id, g.generation_id, g.status, g.provider_job_id AS job_id, g.created_at AS ordered_at
        FROM generations g WHERE g.status IN ('intended', 'open', 'fetching', 'unknown') AND NOT g.given_up
        ORDER BY g.provider, g.generation_id
        """,
    )


async def paid_providers(db: Database) -> list[PaidProvider]:
    """Those who are paid for each order, by the actors whose work that is: `name, actor, open_orders`, and `unordered`,
    the live tasks for which no order is known here, so that they will be ordered, or ordered again."""
    return await fetch(
        db,
        PaidProvider,
        f"""
        SELECT q.provider AS name, q.actor,
               (SELECT count(*) FROM generations g WHERE g.provider = q.provider AND NOT g.given_up
                  AND g.status IN ('intended', 'open', 'fetching', 'unknown')
                  AND EXISTS (SELECT FROM tasks t WHERE t.task_id = g.task_id AND t.actor = q.actor)) AS open_orders,
               (SELECT count(*) FROM tasks t WHERE t.queue = q.queue AND t.status IN {words(LIVE)}
                  AND NOT EXISTS (SELECT FROM generations g WHERE g.task_id = t.task_id
                    AND g.status NOT IN ('failed', 'refused'))) AS unordered
        FROM queues q WHERE q.actor IN ('media', 'summarize') ORDER BY q.provider, q.actor
        """,  # noqa: S608 - the states' own words
    )


async def live_keys(db: Database) -> int:
    number: int = await db.fetchval(
        "SELECT count(*) FROM api_keys WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())"
    )
    return number


async def was_done_last(db: Database) -> bool:
    """Whether this was the last thing that any operator did here."""
    last: str | None = await db.fetchval("SELECT action FROM audit_log ORDER BY audit_id DESC LIMIT 1")
    return last == ACTION


async def transaction(db: Database) -> int:
    """The number that everything bears which this transaction writes."""
    number: int = await db.fetchval("SELECT pg_current_xact_id()::text::bigint")
    return number


async def newest_beginning(db: Database) -> Position | None:
    """The place before everything that the latest restore wrote, and everything since; none when there was none."""
    number: int | None = await db.fetchval(
        "SELECT (details ->> 'transaction')::bigint FROM audit_log WHERE action = $1 ORDER BY audit_id DESC LIMIT 1",
        ACTION,
    )
    return None if number is None else Position.before(number)


def _count(status: str) -> int:
    """From what Postgres says of a statement, such as `DELETE 3`."""
    return int(status.rpartition(" ")[2])

"""The outbox as its readers need it: which subjects have rows, their locks, their rows, and failed tries."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.store.record import Record, fetch
from windlass.shared.store.rows import OutboxMoveRow

CHANNEL = "windlass_outbox"
LONGEST_ERROR = 1000
MOST_COUNTED = 100_000

IS_DUE = """NOT EXISTS (
    SELECT 1 FROM outbox_subjects s
    WHERE s.feature = found.feature AND s.subject = found.subject AND s.next_try_at > clock_timestamp())"""
"""A subject that failed is left out until its next try."""

Key = tuple[str, UUID]
"""A feature and one of its subjects."""


@dataclass(frozen=True)
class NewRows:
    """The subjects of new rows, the oldest first."""

    keys: list[Key]
    is_complete: bool
    """All rows were read, and not only as many as were asked for."""
    line: int
    """The oldest transaction that was open. All rows of older ones were visible, so the next look begins here."""


@dataclass(frozen=True)
class Page:
    """Subjects in the order of their keys."""

    keys: list[Key]
    last: Key | None
    """The next page begins after it; none if this was the last page."""


class Move(OutboxMoveRow):
    """A move of a task. An event without a task has none of these."""

    task_id: UUID
    life: int
    seq: int
    status: str

    @property
    def is_of_task(self) -> bool:
        return self["task_id"] is not None


class OutboxState(Record):
    """How many rows wait for a feature, and how old the oldest is."""

    feature: str
    rows: int
    oldest_seconds: float


class _Found(Record):
    feature: str | None
    subject: UUID
    rows: int
    line: int


class _Walked(Record):
    feature: str
    subject: UUID
    is_due: bool


async def new_rows(db: Database, *, since: int, at_most: int, feature: str | None = None) -> NewRows:
    """Finds the subjects of rows that transaction `since` and later ones wrote. Takes no lock.

    Rows of earlier transactions are not looked at, nor are the dead ones among them, which stay in the index while a
    snapshot is open. `since` is only a hint: a restored database can contain rows of any transaction, and `walk` finds
    them.
    """
    found = await fetch(
        db,
        _Found,
        f"""
        WITH found AS MATERIALIZED (
            SELECT o.id, o.feature, o.subject FROM outbox o
            WHERE o.xid >= $1::text::xid8 AND ($3::text IS NULL OR o.feature = $3) ORDER BY o.xid LIMIT $2
        )
        SELECT due.feature, due.subject, (SELECT count(*) FROM found) AS rows,
               pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS line
        FROM (SELECT) AS always LEFT JOIN (
            SELECT found.feature, found.subject, min(found.id) AS first FROM found WHERE {IS_DUE}
            GROUP BY found.feature, found.subject
        ) AS due ON true ORDER BY due.first
        """,  # noqa: S608 - a constant
        str(since),
        at_most,
        feature,
    )
    keys = [(row.feature, row.subject) for row in found if row.feature is not None]
    return NewRows(keys, found[0].rows < at_most, found[0].line)


async def walk(db: Database, *, after: Key | None, at_most: int, feature: str | None = None) -> Page:
    """The subjects of all rows, a page at a time. Each is found by one probe of the index, however many rows it has."""
    start, subject = after or (feature or "", UUID(int=0))
    walked = await fetch(
        db,
        _Walked,
        f"""
        WITH RECURSIVE found AS (
            (SELECT o.feature, o.subject, 1 AS place FROM outbox o
             WHERE (o.feature, o.subject) > ($1, $2) AND ($4::text IS NULL OR o.feature = $4)
             ORDER BY o.feature, o.subject LIMIT 1)
            UNION ALL
            SELECT next.* FROM found CROSS JOIN LATERAL (
                SELECT o.feature, o.subject, found.place + 1 FROM outbox o
                WHERE (o.feature, o.subject) > (found.feature, found.subject) AND ($4::text IS NULL OR o.feature = $4)
                ORDER BY o.feature, o.subject LIMIT 1
            ) AS next WHERE found.place < $3
        )
        SELECT found.feature, found.subject, {IS_DUE} AS is_due FROM found ORDER BY found.place
        """,  # noqa: S608 - a constant
        start,
        subject,
        at_most,
        feature,
    )
    last = (walked[-1].feature, walked[-1].subject) if len(walked) == at_most else None
    return Page([(row.feature, row.subject) for row in walked if row.is_due], last)


async def try_lock(db: Database, feature: str, subjects: Sequence[UUID]) -> list[UUID]:
    """Locks those of the subjects that nobody else is handling, until the end of the transaction."""
    locks = [_lock(feature, subject) for subject in subjects]
    taken = await db.fetch("SELECT pg_try_advisory_xact_lock(lock) AS taken FROM unnest($1::bigint[]) AS lock", locks)
    return [subject for subject, row in zip(subjects, taken, strict=True) if row["taken"]]


async def lock(db: Database, feature: str, subjects: Iterable[UUID]) -> None:
    """Locks all of these subjects. Everybody who waits does so in the same order."""
    locks = sorted(_lock(feature, subject) for subject in subjects)
    await db.execute("SELECT pg_advisory_xact_lock(lock) FROM unnest($1::bigint[]) AS lock", locks)


def _lock(feature: str, subject: UUID) -> int:
    digest = blake2b(feature.encode() + subject.bytes, digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


async def rows(db: Database, feature: str, subjects: Sequence[UUID], *, at_most: int) -> list[Move]:
    """The first rows of each of these subjects, in the order of each task's history. Read them under the subjects'
    locks."""
    return await fetch(
        db,
        Move,
        """
        SELECT o.id, o.feature, o.subject, o.task_id, o.life, o.seq, o.move, o.status, o.at, o.data
        FROM unnest($2::uuid[]) AS one(subject) CROSS JOIN LATERAL (
            SELECT * FROM outbox WHERE outbox.feature = $1 AND outbox.subject = one.subject
            ORDER BY outbox.task_id, outbox.seq LIMIT $3
        ) AS o ORDER BY o.task_id, o.seq
        """,
        feature,
        list(subjects),
        at_most,
    )


async def delete(db: Database, feature: str, subjects: Sequence[UUID], handled: Sequence[Move]) -> None:
    """In the transaction that handled the rows. It also forgets earlier failures of these subjects."""
    await db.execute(
        """
        WITH handled AS (DELETE FROM outbox WHERE id = ANY ($1))
        DELETE FROM outbox_subjects WHERE feature = $2 AND subject = ANY ($3)
        """,
        [row.id for row in handled],
        feature,
        list(subjects),
    )


async def back_off(db: Database, feature: str, subject: UUID, error: str) -> float:
    """Records a failed try and returns the seconds until the next one: 1, 2, 4 … up to an hour. A subject that another
    process has handled meanwhile needs none."""
    seconds: float | None = await db.fetchval(
        """
        INSERT INTO outbox_subjects AS s (feature, subject, tries, error, next_try_at)
        SELECT $1::text, $2::uuid, 1, $3::text, clock_timestamp() + interval '1 s'
        WHERE EXISTS (SELECT 1 FROM outbox o WHERE o.feature = $1 AND o.subject = $2)
        ON CONFLICT (feature, subject) DO UPDATE SET
            tries = s.tries + 1, error = excluded.error, failed_at = clock_timestamp(),
            next_try_at = clock_timestamp() + least(interval '1 s' * 2 ^ least(s.tries, 12), interval '1 h')
        RETURNING extract(epoch FROM s.next_try_at - clock_timestamp())::float
        """,
        feature,
        subject,
        error[:LONGEST_ERROR],
    )
    return max(0.0, seconds or 0.0)


async def end_frozen(db: Database, *, after_seconds: float = 5) -> int:
    """Ends transactions whose process stopped in the middle of a statement, and returns how many. The driver prepares
    a statement before it executes it; between the two, Postgres counts the session as active, and its timeout for idle
    transactions does not apply. The same is true while it sends rows to a process that does not read them."""
    ended: int = await db.fetchval(
        """
        SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
          AND (application_name LIKE 'windlass-orchestrator %' OR application_name LIKE 'windlass-api %')
          AND state = 'active' AND wait_event IN ('ClientRead', 'ClientWrite')
          AND state_change < clock_timestamp() - $1 * interval '1 s'
        """,
        after_seconds,
    )
    return ended


async def state(db: Database) -> list[OutboxState]:
    """For the metrics. Counts the oldest 100,000 rows."""
    return await fetch(
        db,
        OutboxState,
        """
        SELECT o.feature, count(*) AS rows, extract(epoch FROM clock_timestamp() - min(o.at))::float AS oldest_seconds
        FROM (SELECT outbox.feature, outbox.at FROM outbox ORDER BY outbox.xid LIMIT $1) AS o GROUP BY o.feature
        """,
        MOST_COUNTED,
    )

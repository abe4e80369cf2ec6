"""Handles the pending outbox rows of subjects: the orchestrator as they arrive, the api before it answers."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import asyncpg

from windlass.shared import db
from windlass.shared.errors import words_of
from windlass.shared.features.feature import Feature
from windlass.shared.metrics.outbox import FAILED, HANDLED
from windlass.shared.store import outbox

log = logging.getLogger("features")

REPEATED: tuple[type[BaseException], ...] = (
    asyncpg.DeadlockDetectedError,
    asyncpg.LockNotAvailableError,
    asyncpg.SerializationError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)
"""The transaction was rolled back because of other transactions, or because this process was stopped for a while. It is
repeated, and is not a failure of the feature."""


@dataclass
class Outcome:
    """What became of some subjects."""

    rows: int = 0
    busy: list[UUID] = field(default_factory=list)
    """Another transaction was in the way: repeat them soon."""
    unfinished: list[UUID] = field(default_factory=list)
    """They have more rows."""
    failed: dict[UUID, float] = field(default_factory=dict)
    """The feature raised an error: seconds until the next try."""


async def handle_pending(pool: db.Pool, feature: Feature, subjects: Sequence[UUID], *, waits: bool = False) -> Outcome:
    """Handles the rows of these subjects in one transaction. If that fails, each of them is handled alone, and the
    failing ones back off. `waits` waits for the locks of subjects that another process is handling."""
    outcome = Outcome()
    try:
        await _handle(pool, feature, subjects, outcome, waits=waits)
    except REPEATED as error:
        log.info("outbox_repeated feature=%s subjects=%d error=%s", feature.name, len(subjects), words_of(error))
        outcome.busy.extend(subjects)
    except Exception as error:
        # Statement timeouts are among these errors, and are the feature's own fault.
        if isinstance(error, db.UNAVAILABLE) and not isinstance(error, asyncpg.QueryCanceledError):
            raise
        if len(subjects) > 1:
            for subject in subjects:
                alone = await handle_pending(pool, feature, [subject], waits=waits)
                outcome.rows += alone.rows
                outcome.busy += alone.busy
                outcome.unfinished += alone.unfinished
                outcome.failed |= alone.failed
        else:
            (subject,) = subjects
            FAILED.labels(feature.name).inc()
            outcome.failed[subject] = await _back_off(pool, feature, subject, error)
    return outcome


async def _handle(pool: db.Pool, feature: Feature, subjects: Sequence[UUID], outcome: Outcome, *, waits: bool) -> None:
    async with pool.acquire() as connection, connection.transaction():
        if waits:
            await outbox.lock(connection, feature.name, subjects)
            locked = list(subjects)
        else:
            locked = await outbox.try_lock(connection, feature.name, subjects)
        # Read by a statement of its own: its snapshot includes what the last owner of the lock committed.
        moves = await outbox.rows(connection, feature.name, locked, at_most=feature.rows_at_once) if locked else []
        if moves:
            await feature.handle(connection, moves)
            await outbox.delete(connection, feature.name, locked, moves)
    HANDLED.labels(feature.name).inc(len(moves))
    outcome.rows += len(moves)
    outcome.busy += set(subjects).difference(locked)
    count = Counter(move.subject for move in moves)
    outcome.unfinished += [subject for subject, rows in count.items() if rows == feature.rows_at_once]


async def _back_off(pool: db.Pool, feature: Feature, subject: UUID, error: Exception) -> float:
    # Postgres' own message quotes the refused row, which may contain what a user wrote.
    is_refusal = isinstance(error, asyncpg.PostgresError)
    words = words_of(error).partition("\n")[0]
    log.error(
        "outbox_failed feature=%s subject=%s error=%s",
        feature.name, subject, words, exc_info=None if is_refusal else error,
    )  # fmt: skip
    return await outbox.back_off(pool, feature.name, subject, words)

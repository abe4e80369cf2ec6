"""One transaction about one endpoint, under its lock: the outcomes of its deliveries are handled, then a call about it
is decided."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar
from uuid import UUID

import asyncpg

from windlass.shared.db import Database
from windlass.shared.features.feature import ROWS_AT_ONCE, Feature
from windlass.shared.features.transactions import Session, repeatedly
from windlass.shared.features.webhooks import outcomes, queries, rules, settling
from windlass.shared.features.webhooks.bodies import utc
from windlass.shared.features.webhooks.judging import REASONS, Standing, judge
from windlass.shared.features.webhooks.publishing import publish
from windlass.shared.metrics.outbox import HANDLED
from windlass.shared.store import outbox
from windlass.shared.store.outbox import Move
from windlass.shared.store.record import fetchrow
from windlass.shared.store.rows import WebhookRow
from windlass.shared.webhook_states import EndpointState, Scope

log = logging.getLogger("webhooks")

FEATURE = "delivery"
"""As the outbox names it. Its subject is the endpoint."""

LOOK = "look"
"""The outbox row of an endpoint that has to be looked at: its probe is due, or its owner's rights have ended. It may
have limits for what a disabled endpoint holds."""

TOO_LONG = "held for too long at a disabled webhook"

Answer = TypeVar("Answer")


async def in_turn(db: Database, webhook_id: UUID, act: Callable[["Turn"], Awaitable[Answer]]) -> Answer | None:
    """Locks the endpoint, handles its outbox rows, and acts, in one transaction. Returns nothing if there is no such
    endpoint."""

    async def once(session: Session) -> tuple[Turn, int, Answer] | None:
        await outbox.lock(session, FEATURE, [webhook_id])
        turn = await Turn.of(session, webhook_id, locks=True)
        if turn is None:
            return None
        pending = await outbox.rows(session, FEATURE, [webhook_id], at_most=ROWS_AT_ONCE)
        if pending:
            await turn.handle(pending)
            await outbox.delete(session, FEATURE, [webhook_id], pending)
        return turn, len(pending), await act(turn)

    done = await repeatedly(db, once)
    if done is None:
        return None
    turn, rows, answer = done
    HANDLED.labels(FEATURE).inc(rows)
    turn.report()
    return answer


async def handle(db: Database, moves: Sequence[Move]) -> None:
    assert not isinstance(db, asyncpg.Pool), "handled in a transaction"
    for webhook_id in sorted({move.subject for move in moves}):
        turn = await Turn.of(db, webhook_id)
        if turn is not None:
            await turn.handle([move for move in moves if move.subject == webhook_id])
            turn.report()


class Turn:
    """The subject is locked in the outbox. The endpoint's row is locked only if it may have to change: other endpoints
    of many deliveries write nothing but their outcomes."""

    def __init__(self, db: Session, row: WebhookRow, *, is_locked: bool) -> None:
        self.db = db
        self.row = row
        self._is_locked = is_locked
        self._changes: list[tuple[str, str | None]] = []

    @classmethod
    async def of(cls, db: Session, webhook_id: UUID, *, locks: bool = False) -> "Turn | None":
        """Also of a deleted endpoint, whose deliveries end."""
        row = await _read(db, webhook_id, locks=locks)
        return None if row is None else cls(db, row, is_locked=locks)

    def report(self) -> None:
        """Writes the log, once the turn is committed."""
        for state, reason in self._changes:
            log.log(
                logging.INFO if state == EndpointState.ENABLED else logging.WARNING,
                "webhook_%s webhook=%s user=%s reason=%s", state, self.row.webhook_id, self.row.user_id, reason,
            )  # fmt: skip

    async def handle(self, moves: Sequence[Move]) -> None:
        """Records the outcomes of deliveries, judges the endpoint by its tries, and settles what waits for it."""
        found = await outcomes.of_moves(self.db, moves)
        await outcomes.record(self.db, found)
        looks = [move.data or {} for move in moves if move.move == LOOK]
        is_asked_to = any(not move.is_of_task for move in moves)
        tries = await outcomes.tries_since(self.db, self.row.webhook_id, found)
        standing = self._judged(tries)
        if standing is None and self._is_well and not is_asked_to:
            return
        await self.lock()
        standing = self._judged(tries)
        if standing is not None:
            await self._stand(standing)
        elif self.row.probing and found:
            await self._update("probing = false")
        for data in looks:
            await self.look(held_most=data.get("held_most"), held_days=data.get("held_days"))
        await self.settle()

    @property
    def _is_well(self) -> bool:
        return self.row.state == EndpointState.ENABLED or self.row.deleted_at is not None

    def _judged(self, tries: Sequence[outcomes.Tried]) -> Standing | None:
        """None if the endpoint stays as it is."""
        if self.row.deleted_at is not None:
            return None
        before = Standing(self.row.state, self.row.changed_at, self.row.failing_since)
        after = judge(before, tries)
        return None if after is before else after

    async def lock(self) -> None:
        if not self._is_locked:
            row = await _read(self.db, self.row.webhook_id, locks=True)
            assert row is not None, "endpoints are kept when they are deleted"
            self.row, self._is_locked = row, True

    async def settle(self) -> None:
        await settling.settle(self.db, self.row)

    async def give_up(self, reason: str) -> None:
        await settling.give_up(self.db, self.row.webhook_id, reason)

    async def look(self, *, held_most: int | None = None, held_days: int | None = None) -> None:
        """Disables the endpoint if its owner's keys do not allow it any more, tries a disabled one if its daily probe
        is due, and gives up what it has held for too long."""
        await self.lock()
        if self.row.deleted_at is not None:
            return
        if self.row.state != EndpointState.DISABLED or self.row.probe_at is not None:
            owner = self.row.user_id
            rights = (await queries.rights_of(self.db, [owner])).get(owner, rules.Rights())
            if not rules.may_read(rights, owner, owner if self.row.scope == Scope.OWN else None):
                why = rules.lost_right(rights)
                await self.disable(why)
                await self.give_up(why)
                return
        await self._update(
            """
            probing = true, probe_at = CASE WHEN clock_timestamp() < changed_at + interval '30 days'
                                            THEN clock_timestamp() + interval '1 day' END
            """,
            "probe_at <= clock_timestamp()",
        )
        if held_most is not None and self.row.state in (EndpointState.DISABLED, EndpointState.GONE):
            await settling.give_up(
                self.db, self.row.webhook_id, TOO_LONG, except_newest=held_most, older_than_days=held_days
            )

    async def enable(self) -> None:
        await self._move(EndpointState.ENABLED, None)

    async def disable(self, reason: str) -> None:
        """By a user, or for a missing right. It is not probed."""
        await self._move(EndpointState.DISABLED, reason)

    async def delete(self) -> None:
        await self._update("deleted_at = clock_timestamp(), updated_at = clock_timestamp(), probe_at = NULL")

    async def _stand(self, standing: Standing) -> None:
        """After its tries. An endpoint that was disabled because it failed is probed once a day, for thirty days."""
        state = EndpointState(standing.state)
        await self._update(
            """
            state = $2::text, reason = $3, changed_at = $4, failing_since = $5, updated_at = clock_timestamp(),
            probing = false, probe_at = CASE WHEN $2::text = 'disabled' THEN clock_timestamp() + interval '1 day' END
            """,
            values=(state.value, REASONS[state], standing.changed_at, standing.failing_since),
        )
        self._changes.append((self.row.state, self.row.reason))
        if state == EndpointState.DISABLED:
            await self._publish_disabled()

    async def _publish_disabled(self) -> None:
        row = self.row
        await publish(
            self.db,
            rules.DISABLED,
            row.webhook_id,
            seq=int(row.changed_at.timestamp() * 1_000_000),
            at=row.updated_at,
            owner=row.user_id,
            about={},
            data={
                "webhook_id": row.webhook_id,
                "url": row.url,
                "user_id": row.user_id,
                "reason": row.reason,
                "failing_since": utc(row.failing_since),
            },
        )

    async def _move(self, state: EndpointState, reason: str | None) -> None:
        await self._update(
            """
            state = $2, reason = $3, changed_at = clock_timestamp(), updated_at = clock_timestamp(), probing = false,
            failing_since = NULL, probe_at = NULL
            """,
            values=(state.value, reason),
        )
        self._changes.append((state, reason))

    async def _update(self, changes: str, condition: str = "true", values: Sequence[object] = ()) -> None:
        changed = await fetchrow(
            self.db,
            WebhookRow,
            f"UPDATE webhooks SET {changes} WHERE webhook_id = $1 AND {condition} RETURNING *",  # noqa: S608 - our own
            self.row.webhook_id,
            *values,
        )
        self.row = changed or self.row


async def _read(db: Session, webhook_id: UUID, *, locks: bool) -> WebhookRow | None:
    query = "SELECT * FROM webhooks WHERE webhook_id = $1"
    lock = "SELECT * FROM webhooks WHERE webhook_id = $1 FOR NO KEY UPDATE"
    return await fetchrow(db, WebhookRow, lock if locks else query, webhook_id)


DELIVERIES = Feature(FEATURE, handle)

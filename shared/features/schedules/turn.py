"""One transaction about one schedule, under its lock: what ended is recorded, then what is due is decided."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import asyncpg

from windlass.shared import db as postgres
from windlass.shared.db import Database
from windlass.shared.features.feature import ROWS_AT_ONCE
from windlass.shared.features.handling import REPEATED
from windlass.shared.features.schedules import operations, queries, reporting, rules, runs
from windlass.shared.features.schedules.reporting import Decision
from windlass.shared.features.schedules.rules import Occurrence, Verdict
from windlass.shared.features.transactions import TRIES, Session, transaction
from windlass.shared.metrics.outbox import HANDLED
from windlass.shared.schedules.planner import Plan, Planned
from windlass.shared.schedules.targets import fresh
from windlass.shared.schedules.words import Cause, Kind, Outcome, PauseReason, ScheduleState
from windlass.shared.store import outbox
from windlass.shared.store.outbox import Move
from windlass.shared.store.rows import ScheduleEventRow
from windlass.shared.store.schedules.reading import Read

FEATURE = "schedule"
"""As the outbox names it."""

KEY_REVOKED = "revoke"
"""The outbox row that a revoked key of the owner writes."""

Answer = TypeVar("Answer")


async def in_turn(
    db: Database,
    schedule_id: UUID,
    act: Callable[["Turn"], Awaitable[Answer]],
    *,
    now: datetime | None = None,
    catches_up: bool = True,
) -> Answer | None:
    """Locks the schedule, catches up, and acts, in one transaction. Returns nothing if there is no such schedule. A
    lock timeout or a deadlock repeats the whole turn."""
    for tries_left in reversed(range(TRIES)):
        try:
            async with transaction(db) as connection:
                if catches_up:
                    await outbox.lock(connection, FEATURE, [schedule_id])
                row = await queries.lock(connection, schedule_id, now)
                if row is None or row.deleted_at is not None:
                    return None
                turn = Turn(connection, row)
                if catches_up:
                    await turn.catch_up()
                answer = await act(turn)
        except REPEATED:
            if not tries_left or not isinstance(db, asyncpg.Pool):
                raise
        else:
            turn.report()
            return answer
    raise AssertionError("the last try returns or raises")


class Turn:
    """The caller has locked the schedule, and reports the turn once it is committed."""

    def __init__(self, db: Session, row: Read) -> None:
        self._db = db
        self.row = row
        """As it is now, with what this turn has changed."""
        self.decisions: list[Decision] = []
        self._started: list[dict[str, Any]] = []
        self._events: list[ScheduleEventRow] = []
        self._runs: list[runs.OpenRun] | None = None
        self._handled = 0
        self._reports = operations.Reports()
        """What was done to projects and workflows in the same transaction."""

    def report(self) -> None:
        """Writes the log and counts."""
        HANDLED.labels(FEATURE).inc(self._handled)
        reporting.report(self.row, self.decisions, self._started, self._events)
        self._reports.write()

    # What ended

    async def catch_up(self) -> None:
        """Handles the schedule's outbox rows, under their subject's lock. They are only marks: what counts are the runs
        as they are now."""
        await self.settle_started()
        pending = await outbox.rows(self._db, FEATURE, [self.row.schedule_id], at_most=ROWS_AT_ONCE)
        await self.settle(pending)
        if pending:
            await outbox.delete(self._db, FEATURE, [self.row.schedule_id], pending)
        self._handled = len(pending)

    async def settle_started(self) -> None:
        """Handles what has happened to what this schedule started: its end is the schedule's."""
        await operations.settle_started(self._db, self.row.schedule_id, self._reports)

    async def settle(self, moves: Sequence[Move] = ()) -> None:
        """Records the runs that ended, and starts the one that waited for them. A schedule whose owner has no key left
        is paused first."""
        may_be_keyless = any(move.move == KEY_REVOKED for move in moves) and self.row.state == ScheduleState.ACTIVE
        if may_be_keyless and not await queries.has_key(self._db, self.row.user_id):
            await self.halt(PauseReason.OWNER_HAS_NO_KEY)
        found = await self._open_runs()
        ends = [
            (run, run.ended_as)
            for run in found
            if run.outcome == Outcome.STARTED and not run.is_recorded and run.ended_as is not None
        ]
        if ends:
            await runs.record_ends(self._db, self.row.schedule_id, [(run.due_at, end) for run, end in ends])
            self._runs = None
        for run, end in ends:
            await self._count_end(run.due_at, end)
        found = await self._open_runs()
        waiting = next((run for run in found if run.outcome == Outcome.WAITING), None)
        if waiting is not None and waiting.start is not None and not any(run.is_live for run in found):
            occurrence = Occurrence(waiting.due_at, waiting.cause, waiting.start, has_waited=True)
            await self._try(occurrence, has_key=await queries.has_key(self._db, self.row.user_id))

    async def _count_end(self, due_at: datetime, ended_as: str) -> None:
        failures = rules.failures_after(self.row.failures, ended_as)
        if failures > self.row.failures:
            await self._fail(due_at, Outcome.STARTED, ended_as=ended_as)
        elif failures != self.row.failures:
            self.row = await queries.set_failures(self._db, self.row, failures)

    async def _open_runs(self) -> list[runs.OpenRun]:
        if self._runs is None:
            self._runs = await runs.open_runs(self._db, self.row)
        return self._runs

    # What is due

    async def fire(self, plan: Plan) -> Read:
        """Decides the planned times, and moves on to the next."""
        await self.decide(
            [
                each
                if each.missed_because is not None
                else Occurrence(each.due_at, Cause.TIME, fresh(self.row.kind, self.row.prepared))
                for each in plan.occurrences
            ]
        )
        reached = plan.last_due_at or self.row.last_due_at
        self.row = await queries.advance(self._db, self.row, reached, plan.next_due_at, plan.next_at)
        return self.row

    async def decide(self, occurrences: Sequence[Planned | Occurrence]) -> None:
        """Each due time gets its row, unless it has one."""
        has_key, earlier = await runs.earlier(self._db, self.row, [each.due_at for each in occurrences])
        missed = [each for each in occurrences if isinstance(each, Planned)]
        await self.miss([each for each in missed if each.due_at not in earlier])
        for each in occurrences:
            row = earlier.get(each.due_at)
            if row is not None and (
                isinstance(each, Planned) or rules.is_settled(row.outcome, each.cause, is_summary=row.until is not None)
            ):
                self._decided(each.due_at, row.outcome, row.reason, is_new=False)
            elif isinstance(each, Occurrence):
                await self._try(each, has_key=has_key)

    async def miss(self, missed: Sequence[Planned]) -> None:
        if missed:
            await runs.miss(self._db, self.row.schedule_id, missed)
        for each in missed:
            self._decided(each.due_at, Outcome.MISSED, each.missed_because)

    async def _try(self, occurrence: Occurrence, *, has_key: bool) -> None:
        """A start that fails is undone, and the row has the reason."""
        verdict = await self._verdict(occurrence, has_key=has_key)
        run_id = None
        changed = None
        mark = self._reports.marked()
        try:
            if verdict.outcome == Outcome.STARTED or verdict.cancels_previous:
                async with self._db.transaction():
                    if verdict.cancels_previous:
                        verdict = await self._cancel_previous(verdict)
                    if verdict.outcome == Outcome.STARTED:
                        verdict, run_id = await self._start(occurrence.start)
                    if verdict.outcome == Outcome.STARTED:
                        changed = await runs.write_started(self._db, self.row, occurrence, run_id)
        except postgres.AWAY_OR_BUSY + REPEATED:
            raise
        except asyncpg.PostgresError as error:
            verdict, changed = Verdict(Outcome.REFUSED, error.message or str(error)), None
            self._reports.forget_since(mark)
        self._runs = None
        if changed is not None:
            self.row = changed
            self._started.append(occurrence.start)
        else:
            await runs.write_run(self._db, self.row.schedule_id, occurrence, verdict)
        self._decided(occurrence.due_at, verdict.outcome, verdict.reason)
        if verdict.outcome == Outcome.REFUSED:
            await self._fail(occurrence.due_at, Outcome.REFUSED, reason=verdict.reason)
            if not has_key and self.row.state == ScheduleState.ACTIVE:
                await self.halt(PauseReason.OWNER_HAS_NO_KEY)

    async def _verdict(self, occurrence: Occurrence, *, has_key: bool) -> Verdict:
        if occurrence.has_waited:
            return rules.verdict_after_waiting(has_key=has_key)
        found = await self._open_runs()
        return rules.verdict(
            overlap=self.row.overlap,
            cause=occurrence.cause,
            is_paused=self.row.state == ScheduleState.PAUSED,
            has_key=has_key,
            has_waiting=any(run.outcome == Outcome.WAITING for run in found),
            has_live=any(run.is_live for run in found),
        )

    async def _cancel_previous(self, verdict: Verdict) -> Verdict:
        """Starts at once only if the previous runs have verifiably ended."""
        await runs.give_up_waiting(self._db, self.row.schedule_id, Outcome.SKIPPED, "superseded")
        await operations.cancel(self._db, [run for run in await self._open_runs() if run.is_live], self._reports)
        left = await runs.open_runs(self._db, self.row)
        return verdict if any(run.is_live for run in left) else rules.START

    async def _start(self, start: dict[str, Any]) -> tuple[Verdict, UUID | None]:
        refusal, run_id = None, None
        kind = rules.kind_of(start)
        if kind == Kind.TASK:
            refusal = await operations.store_task(self._db, start)
        elif kind == Kind.WORKFLOW:
            await operations.store_workflow(self._db, start)
        else:
            refusal, run_id = await operations.start_project(self._db, self.row.user_id, start, self._reports)
        return (rules.START if refusal is None else rules.refused(refusal)), run_id

    def occurrences(self, times: Sequence[datetime], cause: Cause) -> list[Occurrence]:
        return [Occurrence(each, cause, fresh(self.row.kind, self.row.prepared)) for each in times]

    def _decided(self, due_at: datetime, outcome: str, reason: str | None, *, is_new: bool = True) -> None:
        self.decisions.append(Decision(self.row.schedule_id, due_at, outcome, reason, self.row.kind, is_new))

    # The schedule itself

    async def _fail(self, due_at: datetime, outcome: str, **facts: str | None) -> None:
        """One more failure in a row. After too many the schedule pauses."""
        self.row = await queries.set_failures(self._db, self.row, self.row.failures + 1)
        run = await runs.run_at(self._db, self.row.schedule_id, due_at)
        ids = {name: run[name] for name in ("task_id", "workflow_id", "project_id", "run_id")}
        event = await self._note("failed", due_at=due_at, outcome=outcome, **facts, **ids, failures=self.row.failures)
        if rules.pauses(self.row.failures, self.row.pause_after_failures) and self.row.state == ScheduleState.ACTIVE:
            await self.halt(PauseReason.FAILURES)
        await queries.publish_failure(self._db, self.row.schedule_id, due_at, event.seq)

    async def halt(self, reason: PauseReason) -> None:
        """What is due meanwhile gets its rows when the schedule is resumed."""
        why = {"pause_reason": reason, "pause_note": None}
        paused = {"state": ScheduleState.PAUSED, **why, "next_at": None, "next_due_at": None}
        self.row = await queries.update(self._db, self.row, paused)
        await self._give_up_waiting("paused")
        await self._note("pause", state=self.row.state, reason=self.row.pause_reason)

    async def change(
        self, kind: str, fields: Mapping[str, Any], missed: Sequence[Planned], *, gives_up: str | None = None
    ) -> Read:
        """Raises NameTaken. `gives_up` is why a run that waits is not started any more."""
        self.row = await queries.update(self._db, self.row, fields, deletes=kind == "delete")
        await self.miss(missed)
        if gives_up is not None:
            await self._give_up_waiting(gives_up)
        await self._note(kind, state=self.row.state, reason=self.row.pause_reason, note=self.row.pause_note)
        await queries.wake(self._db)
        return self.row

    async def _give_up_waiting(self, reason: str) -> None:
        await runs.give_up_waiting(self._db, self.row.schedule_id, Outcome.MISSED, reason)
        self._runs = None

    async def _note(self, kind: str, **data: Any) -> ScheduleEventRow:
        self.row, event = await queries.note(self._db, self.row, kind, data)
        self._events.append(event)
        return event

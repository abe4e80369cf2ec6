"""One transaction about one project, under its lock: ended runs are closed, then the call decides."""

from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal
from typing import Any, TypeVar
from uuid import UUID

from uuid_utils.compat import uuid7

from windlass.shared.concerns import Concern
from windlass.shared.db import Database
from windlass.shared.features.feature import ROWS_AT_ONCE
from windlass.shared.features.handling import REPEATED
from windlass.shared.features.projects import items, queries, rules
from windlass.shared.features.projects.changes import Changes, plain
from windlass.shared.features.projects.queries import Item, Locked, Run, RunOfTask
from windlass.shared.features.transactions import TRIES, Session, transaction
from windlass.shared.metrics.outbox import HANDLED
from windlass.shared.project_states import ITEM, QUEUE, Mode, QueueState, RunState, StopReason
from windlass.shared.store import outbox
from windlass.shared.store.access import audit
from windlass.shared.store.outbox import Move

FEATURE = Concern.RUN.word
"""As the outbox names it."""

CHOOSE = "choose"
"""The outbox row that a bulk job writes: the backlog has another first item."""

Answer = TypeVar("Answer")


async def in_turn(
    db: Database,
    project_id: UUID,
    act: Callable[["Turn"], Awaitable[Answer]],
    *,
    reports: list["Turn"] | None = None,
) -> Answer | None:
    """Locks the project, handles its pending rows, and acts, in one transaction. Returns nothing if there is no such
    project. A lock timeout or a deadlock repeats the whole turn.

    Within another feature's transaction, `reports` collects the turn, and the caller reports it after its commit.
    """
    for tries_left in reversed(range(TRIES)):
        try:
            async with transaction(db) as connection:
                turn = await Turn.begun(connection, project_id)
                if turn is None:
                    return None
                answer = await act(turn)
                await turn.write()
        except REPEATED:
            if not tries_left or reports is not None:
                raise
        else:
            if reports is None:
                turn.report()
            else:
                reports.append(turn)
            return answer
    raise AssertionError("the last try returns or raises")


class Turn:
    """The project is locked. Changes are gathered here, and written by one call at the end."""

    def __init__(self, db: Session, found: Locked) -> None:
        self.db = db
        self.changes = Changes(db)
        self._take(found)
        self._handled = 0

    def _take(self, found: Locked) -> None:
        self.now = found.now
        self.queue = found.queue
        self.run = found.run
        self.task = found.task
        self.choice = found.choice

    @classmethod
    async def begun(cls, db: Session, project_id: UUID, *, chooses: bool = True) -> "Turn | None":
        """Locks the project and handles its pending rows. They are only marks: what counts is the state of the run's
        task, which is read after the rows."""
        await outbox.lock(db, FEATURE, [project_id])
        pending = await outbox.rows(db, FEATURE, [project_id], at_most=ROWS_AT_ONCE)
        found = await queries.lock(db, project_id)
        if found is None:
            return None
        turn = cls(db, found)
        handled = [move for move in pending if chooses or move.move != CHOOSE]
        await turn.settle(handled)
        if handled:
            await outbox.delete(db, FEATURE, [project_id], handled)
            turn._handled = len(handled)
        await turn.written()
        return turn

    def report(self) -> None:
        """Writes the log and counts. Call it once the turn is committed."""
        HANDLED.labels(FEATURE).inc(self._handled)
        self.changes.report(self.queue.project_id)

    # What ended

    async def settle(self, moves: Sequence[Move] = ()) -> None:
        """Closes the current run if its task has ended, and starts the next one, or stops the queue."""
        run = self.run
        if run is not None and run.ended_at is None:
            status, life = (self.task.status, self.task.life) if self.task is not None else (None, None)
            end = rules.end_of_run(life=run.life, task_status=status, task_life=life)
            if end is not None:
                self._follow(run, end)
        elif self.queue.state != QueueState.IDLE and self.queue.forced_at is None:
            self._finish(StopReason.STOPPED)
        if self.queue.forced_at is not None:
            await self._prove()
        revived = [move.task_id for move in moves if move.move == "revive"]
        if revived and self.queue.state == QueueState.IDLE and self.queue.archived_at is None:
            task_of_run = await queries.revived_without_run(self.db, self.queue.project_id, revived)
            if task_of_run is not None:
                await self.written()
                await self._reopen(task_of_run, life=task_of_run.life)
        if any(move.move == CHOOSE for move in moves):
            await self.written()
            await self.rebind()

    def _follow(self, run: Run, end: RunState) -> None:
        """What an end of the current run leads to."""
        failure = None
        if end == RunState.DEAD:
            failure = None if self.task is None else self.task.error
        elif end == RunState.LOST:
            failure = rules.LOST
        following = self.choice.next if run.mode == Mode.LOOP else None
        reason = rules.stop_reason(
            end,
            state=self.queue.state,
            is_forced=self.queue.forced_at is not None,
            mode=run.mode,
            on_failure=self.queue.on_failure,
            has_next=following is not None,
        )
        self._close(run, end, failure)
        if reason is None:
            assert following is not None, "a loop goes on with an item"
            self._advance(run, following, failure)
        elif reason != StopReason.FORCED:
            self._finish(reason, failure)

    def _close(self, run: Run, end: RunState, failure: dict[str, Any] | None = None) -> None:
        """Closes a run, and its item unless that was changed since."""
        of_task = None if end in {RunState.WITHDRAWN, RunState.LOST} or self.task is None else self.task.ended_at
        run.state, run.ended_at, run.error = end, of_task or self.now, failure
        self.changes.runs[run.run_id] = run
        self.changes.note_run(rules.CHANGE_OF_RUN[end], run)
        item = self.choice.bound
        if item is None or item.last_run_id != run.run_id:
            return
        change = rules.CHANGE_OF_ITEM.get(end, "fail")
        first = self.choice.first
        if end == RunState.WITHDRAWN and (first is None or first.item_id != item.item_id):
            item.position = self._head()
        item.state = ITEM[change].target
        self.changes.items[item.item_id] = item
        self.changes.note_item(change, item)

    def _head(self) -> str:
        place = rules.place_beside(Decimal(self.choice.head or rules.GAP), None, is_before=True)
        self.choice.head = format(place, "f")
        return self.choice.head

    def _advance(self, ended: Run, item: Item, failure: dict[str, Any] | None) -> None:
        self._go("advance")
        run = self._open(item, mode=Mode.LOOP, schedule_id=ended.schedule_id)
        self.queue.mode, self.queue.stopped_at, self.queue.stop_reason = Mode.LOOP, None, None
        self.queue.last_error = failure or self.queue.last_error
        self._note_queue("advance")
        self.changes.note_run("open", run)

    def _open(
        self,
        item: Item,
        *,
        mode: str,
        is_named: bool = False,
        schedule_id: UUID | None = None,
    ) -> Run:
        """Submits the item's task as a run's."""
        run = Run(
            run_id=self._id(),
            item_id=item.item_id,
            task_id=self._id(),
            life=1,
            mode=mode,
            named=is_named,
            started_at=self.now,
            schedule_id=schedule_id,
        )
        self.changes.submit(item, run.task_id, self.queue.user_id)
        self._bind(item, run)
        self.changes.opened[run.run_id] = run
        self._become_current(run)
        return run

    def _bind(self, item: Item, run: Run) -> None:
        item.last_run_id = run.run_id
        self.changes.items[item.item_id] = item
        self.choice.bound = item

    def _become_current(self, run: Run) -> None:
        self.run = run
        self.queue.current_run_id = run.run_id

    def _finish(self, reason: StopReason, failure: dict[str, Any] | None = None) -> None:
        self._go("finish")
        self.queue.current_run_id, self.queue.forced_at = None, None
        self.queue.stopped_at, self.queue.stop_reason = self.now, reason
        self.queue.last_error = failure or self.queue.last_error
        ended, self.run = self.run, None
        self._note_queue("finish")
        self.changes.publish(self.queue.project_id, "finish")
        if ended is not None and ended.schedule_id is not None:
            self.changes.tell_schedule(ended.schedule_id)

    async def _prove(self) -> None:
        """Stops the queue once nothing of a run that was force-stopped is alive. The receipt has the proof."""
        run, forced_at = self.run, self.queue.forced_at
        if run is None or run.ended_at is None or forced_at is None:
            return
        jobs, members = await queries.open_jobs_and_family(self.db, run.task_id)
        if any(member.is_open for member in members):
            return
        run.receipt = {
            "asked_at": forced_at.isoformat(),
            "proven_at": self.now.isoformat(),
            "open_jobs": jobs,
            "tasks": [
                _proof(member)
                for member in members
                if member.task_id == run.task_id
                or (member.completed_at is not None and member.completed_at >= forced_at)
            ],
        }
        self.changes.runs[run.run_id] = run
        details = {**run.receipt, "run_id": str(run.run_id)}
        await audit.record(
            self.db,
            key_id="project",
            user_id=self.queue.user_id,
            action="project.force-stopped",
            target=str(self.queue.project_id),
            details=details,
        )
        self._finish(StopReason.FORCED)

    # What is asked for

    def start(self, item: Item, *, mode: str, is_named: bool) -> Run:
        run = self._open(item, mode=mode, is_named=is_named)
        self._begin(run)
        return run

    async def revive(self, task: RunOfTask) -> None:
        """Gives a run's task a new life, and that life a run."""
        await self._reopen(task, life=task.life + 1)
        self.changes.revive(task.task_id)

    async def _reopen(self, task: RunOfTask, *, life: int) -> None:
        run = Run(
            run_id=self._id(),
            item_id=task.item_id,
            task_id=task.task_id,
            life=life,
            attempts_before=task.attempt,
            mode=Mode.SINGLE,
            named=True,
            started_at=self.now,
            revived_from=task.run_id,
        )
        self.changes.opened[run.run_id] = run
        self._become_current(run)
        item = await items.get(self.db, self.queue.project_id, task.item_id)
        # The run has its item, unless that was changed since its last run.
        if item is not None and item.last_run_id == task.run_id and item.state in rules.CAN_BE_RUN:
            self._bind(item, run)
        self._begin(run)

    def _begin(self, run: Run) -> None:
        self._go("start")
        self.queue.mode, self.queue.started_at = run.mode, run.started_at
        self.queue.stopped_at, self.queue.stop_reason, self.queue.last_error = None, None, None
        self._note_queue("start")
        self.changes.note_run("open", run)
        self.changes.publish(self.queue.project_id, "start")

    async def stop(self) -> None:
        """A run that no worker has claimed is withdrawn at once, and its item is the first again."""
        if self.queue.state not in QUEUE["stop"].sources:
            return
        assert self.run is not None, "a project that runs has a run"
        if await queries.is_unclaimed(self.db, self.run):
            self._withdraw(self.run, StopReason.STOPPED)
        else:
            self._go("stop")
            self._note_queue("stop")

    def _withdraw(self, run: Run, reason: StopReason) -> None:
        self._close(run, RunState.WITHDRAWN)
        self._finish(reason)
        self.changes.cancel(run.task_id, "withdrawn")

    def force(self) -> UUID | None:
        """Cancels the run's task, and returns the run. Its descendants follow, level by level."""
        if self.queue.state not in QUEUE["force"].sources:
            return None
        assert self.run is not None, "a project that is not idle has a run"
        if self.queue.forced_at is None:
            self._go("force")
            self.queue.forced_at = self.now
            self._note_queue("force")
            self.changes.wake_janitor()
            self.changes.cancel(self.run.task_id, "force-stop")
        return self.run.run_id

    def archive(self) -> None:
        self.queue.archived_at = self.now
        self._note_queue("archive")

    def note_restore(self) -> None:
        self._note_queue("restore")

    # The backlog

    async def is_claimed(self, item_id: UUID) -> bool:
        """Whether a worker has the item's task. If not, none can claim it before this turn commits."""
        run = self.run
        return (
            run is not None
            and run.ended_at is None
            and run.item_id == item_id
            and not await queries.is_unclaimed(self.db, run)
        )

    async def rebind(self) -> None:
        """The item is chosen late. While no worker has claimed the run's task, the run goes over to the item that is
        first now, or to the new text of its own item. If no item is left, the run is withdrawn."""
        run = self.run
        if run is None or run.ended_at is not None or self.queue.state != QueueState.RUNNING:
            return
        self.choice = await queries.choice(self.db, run, self.queue.project_id)
        bound = self.choice.bound
        if rules.keeps_named_item(is_named=run.named, bound_state=None if bound is None else bound.state):
            item = bound
        else:
            item = self.choice.first if rules.takes_first_item(is_named=run.named, mode=run.mode) else None
        if item is not None and item.last_run_id == run.run_id:
            return
        if run.revived_from is not None or not await queries.is_unclaimed(self.db, run):
            return
        if item is None:
            self._withdraw(run, StopReason.FINISHED)
            return
        if bound is not None and bound.last_run_id == run.run_id and bound.item_id != item.item_id:
            bound.last_run_id = None
            self.changes.items[bound.item_id] = bound
        former = run.task_id
        run.named = run.named and run.item_id == item.item_id
        run.task_id, run.item_id, run.life, run.attempts_before = self._id(), item.item_id, 1, 0
        self.changes.runs[run.run_id] = run
        self.changes.submit(item, run.task_id, self.queue.user_id)
        self._bind(item, run)
        self.changes.cancel(former, "superseded", frees=Concern.RUN.value)
        self.changes.note_run("rebind", run)

    # The queue

    async def written(self) -> None:
        """Writes what was changed so far, and reads the project again."""
        if await self.write():
            found = await queries.lock(self.db, self.queue.project_id)
            assert found is not None, "it is locked"
            self._take(found)

    async def write(self) -> bool:
        """Returns whether there was something to write."""
        return await self.changes.write(self.queue, self.now)

    def _note_queue(self, change: str) -> None:
        self.changes.note_queue(change, self.queue, self.run)

    def _go(self, change: str) -> None:
        """Takes the queue to the state that this change leads to."""
        assert self.queue.state in QUEUE[change].sources, f"{change} of a queue that is {self.queue.state}"
        self.queue.state = QUEUE[change].target

    def _id(self) -> UUID:
        """Begins with the time: lists are in the order of ids."""
        return uuid7(nanoseconds=int(self.now.timestamp() * 1_000_000) * 1000)


def _proof(member: queries.FamilyMember) -> dict[str, Any]:
    proof = member.proof if member.attempt > 0 else None
    return {
        "task_id": str(member.task_id),
        "worker_id": member.worker_id,
        "attempt": member.attempt,
        "status": member.status,
        "ended_at": plain(member.completed_at),
        "proof": rules.proof_of_end(
            member.event,
            by=(proof or {}).get("by"),
            has_keeper="keeper" in (proof or {}),
            has_duration=member.has_duration,
            attempt=member.attempt,
        ),
        "processes": member.proof,
    }

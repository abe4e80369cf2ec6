"""One transaction about one workflow, under its lock: its tasks are counted again, then the call decides."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar
from uuid import UUID

import msgspec

from windlass.shared.concerns import Concern
from windlass.shared.db import Database, as_json
from windlass.shared.features.handling import REPEATED
from windlass.shared.features.transactions import TRIES, Session, call_all, transaction
from windlass.shared.features.workflows import queries, rules
from windlass.shared.features.workflows.queries import Locked, NodeChange
from windlass.shared.features.workflows.reporting import Report
from windlass.shared.features.workflows.rules import Node, Page, Step
from windlass.shared.metrics.counting import Counts as TaskCounts
from windlass.shared.metrics.outbox import HANDLED
from windlass.shared.states import LIVE, State
from windlass.shared.store import outbox
from windlass.shared.store.functions import named
from windlass.shared.workflow_states import ENDED, Counts, WorkflowStatus, status_of

FEATURE = Concern.WORKFLOW.word
"""As the outbox names it."""

MARKS_AT_ONCE = 1000
"""Each turn counts all tasks, so it handles as many rows as it finds."""

Answer = TypeVar("Answer")


async def in_turn(
    db: Database,
    workflow_id: UUID,
    act: Callable[["Turn"], Awaitable[Answer]],
    *,
    before: Callable[[Session], Awaitable[None]] | None = None,
    reports: list["Turn"] | None = None,
) -> Answer | None:
    """Locks the workflow, and acts, in one transaction. Returns nothing if there is no such workflow. A lock timeout or
    a deadlock repeats the whole turn. `before` takes locks that come before the workflow's.

    Within another feature's transaction, `reports` collects the turn, and the caller reports it after its commit.
    """
    for tries_left in reversed(range(TRIES)):
        try:
            async with transaction(db) as session:
                if before is not None:
                    await before(session)
                turn = await Turn.begun(session, workflow_id)
                if turn is None:
                    return None
                answer = await act(turn)
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
    """The workflow is locked."""

    def __init__(self, db: Session, found: Locked) -> None:
        self.db = db
        self._report = Report(found.workflow)
        self._events: list[dict[str, object]] = []
        self._nodes_before: dict[UUID, str] = {}
        self._is_changed = False
        self._has_expanded = False
        self._handled = 0
        self._take(found)

    def _take(self, found: Locked) -> None:
        self.now = found.now
        self.row = found.workflow
        self._failures = found.failures
        self._tasks = found.tasks
        self._nodes = found.nodes

    @classmethod
    async def begun(cls, db: Session, workflow_id: UUID) -> "Turn | None":
        """Locks the workflow and deletes its pending rows. They are only marks: the tasks are counted after the rows
        were read, and every call begins with the counts."""
        await outbox.lock(db, FEATURE, [workflow_id])
        pending = await outbox.rows(db, FEATURE, [workflow_id], at_most=MARKS_AT_ONCE)
        found = await queries.lock(db, workflow_id)
        if found is None:
            return None
        turn = cls(db, found)
        if pending:
            await outbox.delete(db, FEATURE, [workflow_id], pending)
            turn._handled = len(pending)
        return turn

    def report(self) -> None:
        """Writes the log and counts. Call it once the turn is committed."""
        HANDLED.labels(FEATURE).inc(self._handled)
        self._report.write()

    # What follows from the tasks

    async def settle(self) -> None:
        await self._settle_nodes()
        self._count()
        await self._write()

    async def _settle_nodes(self, *, expands: bool = True) -> None:
        """Each pass can complete a node whose result is the list of another one."""
        while steps := [each for each in self._steps() if expands or each[1] != Step.EXPAND]:
            self._nodes_before = {node.node_id: node.status for node, _ in steps} | self._nodes_before
            await queries.write_nodes(self.db, [await self._change(node, step) for node, step in steps])
            await self._read()

    def _steps(self) -> list[tuple[Node, Step]]:
        tasks = rules.by_node(self._tasks)
        steps = [(node, rules.step_of_node(node, tasks.get(node.key, {}))) for node in self._nodes]
        return [(node, step) for node, step in steps if step is not None]

    async def _change(self, node: Node, step: Step) -> NodeChange:
        match step:
            case Step.EXPAND:
                return await self._expand(node)
            case Step.BURY:
                return NodeChange(node.node_id, State.DEAD, None, rules.error_of_source(node.source))
            case Step.WAIT:
                return NodeChange(node.node_id, State.BLOCKED, None, None)
        status = rules.status_of_tasks(rules.by_node(self._tasks).get(node.key, {}))
        return NodeChange(node.node_id, status, node.members, None)

    async def _expand(self, node: Node) -> NodeChange:
        """Submits a task for each element of the list. A list that cannot be used is a failure of the workflow."""
        found = await queries.elements(self.db, node.node_id)
        fault = rules.fault_of_list(found.kind, found.length, node.path, found.keys_of_elements)
        if fault is not None or found.length is None:
            await queries.record_failure(self.db, self.row.workflow_id, node.node_id)
            return NodeChange(node.node_id, State.DEAD, None, rules.error_of_list(fault or ""))
        if found.length:
            await queries.store_elements(self.db, node.node_id, found.length, found.keys_of_elements)
            self._has_expanded = True
            self._report.submitted(node, found.length)
        return NodeChange(node.node_id, State.RUNNING if found.length else State.COMPLETED, found.length, None)

    def _count(self, change: str | None = None) -> None:
        """Takes over the present counts. `change` names the event if a call, and not a task, changed the status."""
        was = self.row.status
        counts = rules.counts_of(
            self._tasks,
            self._nodes,
            failures=self._failures,
            failure_threshold=self.row.failure_threshold,
            cancel_requested=self.row.cancel_requested,
        )
        status = status_of(counts)
        self._is_changed = self._is_changed or counts != _counts_of(self.row)
        for name in ("live", "completed", "dead", "cancelled", "failures"):
            setattr(self.row, name, getattr(counts, name))
        if status != was or change is not None:
            self.row.status = status
            self.row.completed_at = self.now if status in ENDED else None
            self._note(change or rules.change_of(was, status), was)

    def _note(self, change: str, was: str) -> None:
        row = self.row
        counts = {name: getattr(row, name) for name in ("live", "completed", "dead", "cancelled")}
        data = {
            "status": row.status,
            "was": was,
            "failures": row.failures,
            "counts": {"total": sum(counts.values()), **counts},
        }
        self._events.append({"type": change, "data": data})
        self._report.changed(change, row.status)

    async def _write(self) -> None:
        """Rows of the feature come first, then the operations that lock tasks, in one statement. After a cancel the
        tasks are counted once more."""
        page = rules.page_of(self.row.status, self._tasks, cancel_requested=self.row.cancel_requested)
        await self._call(page)
        if page == Page.CANCEL:
            await self._read()
            self._count()
            await self._call(None)

    async def _call(self, page: Page | None) -> None:
        calls: list[tuple[str, Sequence[object]]] = []
        own = self.row.workflow_id
        if self._events or self._is_changed:
            changes = {"at": self.now, **msgspec.structs.asdict(self.row), "events": self._events}
            calls.append((f"{named('write_workflow')}({{}}::uuid, {{}}::text::jsonb)", (own, as_json(changes))))
        ended, reopened = self._moved_nodes()
        if ended or reopened:
            settled = f"{named('settle_barriers')}({{}}::uuid[], {{}}::uuid[])"
            calls.append((f"{named('counts_of')}({settled})", (ended, reopened)))
        # An expansion locks tasks, and so does a page: each of them has a turn of its own.
        has_more = any(step == Step.EXPAND for _, step in self._steps()) or (page is not None and self._has_expanded)
        if has_more:
            calls.append((f"{named('write_event')}('{FEATURE}', {{}}::uuid, 'continue')", (own,)))
        elif page is not None:
            call = f"{named('move_page')}({{}}::uuid, {{}}::text, {{}}::int)"
            calls.append((call, (own, page, queries.TASKS_AT_ONCE)))
        if calls:
            for answer in await call_all(self.db, calls):
                if answer:
                    self._report.ended(msgspec.convert(answer, list[TaskCounts]))
        self._events, self._nodes_before, self._is_changed = [], {}, False

    def _moved_nodes(self) -> tuple[list[UUID], list[UUID]]:
        """The nodes that ended, and those that had ended before, perhaps in another way: what they buried is revived,
        and looks at its parents again."""
        moved = [
            (node, self._nodes_before[node.node_id])
            for node in self._nodes
            if self._nodes_before.get(node.node_id, node.status) != node.status
        ]
        ended = [node.node_id for node, _ in moved if rules.is_over(node.status)]
        return ended, [node.node_id for node, was in moved if rules.is_over(was)]

    async def _read(self) -> None:
        """Reads the tasks and nodes again. What this turn knows of the workflow's own row is newer."""
        found = await queries.lock(self.db, self.row.workflow_id)
        assert found is not None, "it is locked"
        row = self.row
        self._take(found)
        self.row = row

    # What is asked for

    async def cancel(self) -> str:
        """Live tasks are cancelled page by page, and nodes that are not expanded at once. The group is closed before
        any task is locked. Returns the status before."""
        await self._settle_nodes(expands=False)
        self._count()
        was = self.row.status
        if was in {WorkflowStatus.RUNNING, WorkflowStatus.ESCALATED} and not self.row.cancel_requested:
            self.row.cancel_requested = True
            await queries.close_group(self.db, self.row.workflow_id)
            unexpanded = [node for node in self._nodes if node.members is None and not rules.is_over(node.status)]
            if unexpanded:
                changes = [NodeChange(node.node_id, State.CANCELLED, None, None) for node in unexpanded]
                await queries.write_nodes(self.db, changes)
                await self._read()
            is_live = any(each.status in LIVE for each in self._tasks)
            self._count("cancel-requested" if is_live else None)
        await self._write()
        return was

    async def resume(self, mode: str, *, revives: bool) -> str:
        """Forgives the failures that were committed until now, if the workflow is escalated. The failed tasks are
        revived first, so that the status changes once. A later turn expands nodes. Returns the status before."""
        await self._settle_nodes(expands=False)
        self._count()
        was = self.row.status
        if was == WorkflowStatus.ESCALATED:
            seen = await queries.failures(self.db, self.row.workflow_id)
            if revives:
                outcome = await queries.revive_failed(self.db, self.row.workflow_id, mode)
                self._report.revived(outcome.revived)
                self._report.ended(outcome.ended)
            await queries.forgive(self.db, self.row.workflow_id, seen)
            self.row.resumed_at = self.now
            await self._read()
            await self._settle_nodes(expands=False)
            self._count("resume")
        await self._write()
        return was


def _counts_of(row: queries.Workflow) -> Counts:
    return Counts(
        live=row.live,
        completed=row.completed,
        dead=row.dead,
        cancelled=row.cancelled,
        failures=row.failures,
        failure_threshold=row.failure_threshold,
        cancel_requested=row.cancel_requested,
    )

"""A bulk job does not revive tasks of runs: their items go to the heads of their backlogs."""

from collections.abc import Sequence
from decimal import Decimal
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.features.projects import items, queries, rules
from windlass.shared.features.projects.turn import CHOOSE, FEATURE, Turn
from windlass.shared.features.transactions import Session, transaction
from windlass.shared.project_states import ItemState, QueueState
from windlass.shared.store import outbox
from windlass.shared.store.functions import named
from windlass.shared.store.rows import BulkJobRow
from windlass.shared.store.tasks import bulk
from windlass.shared.store.tasks.bulk import Advanced

AS_BRIEFLY_AS_A_FEATURE = """
SELECT set_config('lock_timeout', '500ms', true), set_config('idle_in_transaction_session_timeout', '2s', true)
"""


async def advance(db: Database, job: BulkJobRow, chunk: list[UUID]) -> Advanced | None:
    """Does a chunk of a bulk job, and puts back the items of those tasks that belong to runs, in one transaction. None
    if another process has moved the job on."""
    owned = await bulk.owned(db, chunk) if job.action == "retry" else []
    if not owned:
        return await bulk.advance(db, job, chunk)
    turns: list[Turn] = []
    async with transaction(db) as connection:
        await connection.execute(AS_BRIEFLY_AS_A_FEATURE)
        if not await bulk.lock(connection, job, chunk):
            return None
        put_back = await _put_back(connection, owned, turns)
        after = await bulk.advance_in(connection, job, chunk, put_back=put_back)
    for turn in turns:
        turn.report()
    if after is not None:
        bulk.count_advanced(after)
    return after


async def _put_back(connection: Session, task_ids: Sequence[UUID], turns: list[Turn]) -> int:
    """Returns how many items went to the heads of their backlogs."""
    found = await queries.projects_of(connection, task_ids)
    await outbox.lock(connection, FEATURE, found)
    by_project: dict[UUID, Turn] = {}
    for project_id in found:
        # No task may be locked before the next project is: the process that handles the row chooses.
        turn = await Turn.begun(connection, project_id, chooses=False)
        if turn is not None:
            by_project[project_id] = turn
    failed = await queries.failed_by(connection, task_ids)
    for each in failed:
        turn = by_project[each.project_id]
        head = rules.place_beside(Decimal(turn.choice.head or rules.GAP), None, is_before=True)
        await items.set_state(connection, each.item_id, ItemState.WAITING, head)
        turn.choice.head = format(head, "f")
        item = await items.get(connection, each.project_id, each.item_id)
        assert item is not None, "it was just changed"
        turn.changes.note_item("requeue", item)
    for project_id in sorted({each.project_id for each in failed}):
        turn = by_project[project_id]
        await turn.write()
        if turn.queue.state == QueueState.RUNNING:
            await connection.execute(f"SELECT {named('write_event')}('{FEATURE}', $1, '{CHOOSE}')", project_id)
    turns += by_project.values()
    return len(failed)

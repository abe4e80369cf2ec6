"""`?wait=`: holds the answer back until the task has ended or the time is up. Leaving cancels nothing."""

import time
from functools import partial
from uuid import UUID

from litestar.datastructures import State

from shared.db import Row
from shared.states import TERMINAL
from shared.store import events, tasks


async def wait_for_end(state: State, task_id: UUID, seconds: float) -> tuple[Row, bool]:
    """The task as it is then, and whether it has ended."""
    until = time.monotonic() + seconds
    with state.hub.subscribe([task_id]) as subscription:
        while not state.hub.closing.is_set():
            subscription.clear()
            now = await state.hub.reads.once(("state", task_id), partial(events.state, state.pool, task_id))
            left = until - time.monotonic()
            if now["status"] in TERMINAL or left <= 0:
                break
            subscription.seen = now["last_seq"]
            await subscription.news(left)
    row = await tasks.get(state.pool, task_id)
    assert row is not None, "tasks are never deleted"
    return row, row["status"] in TERMINAL

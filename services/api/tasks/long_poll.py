"""`?wait=`: holds the answer back until the task has ended or the time is up. Leaving cancels nothing."""

import time
from functools import partial
from uuid import UUID

from litestar.datastructures import State

from windlass.services.api.access.auth import Caller
from windlass.services.api.http.errors import Problem
from windlass.shared.states import TERMINAL
from windlass.shared.store import tasks
from windlass.shared.store.reading import events
from windlass.shared.store.rows import TaskRow


class KeyEnded(Problem):
    """The key was good when the request came, and is no longer."""

    def __init__(self) -> None:
        detail = "the key was revoked or has expired while the answer was held back; send a valid one"
        super().__init__(401, "unauthorized", detail, headers={"WWW-Authenticate": "Bearer"})


async def wait_for_end(state: State, caller: Caller, task_id: UUID, seconds: float) -> tuple[TaskRow, bool]:
    """The task as it is then, and whether it has ended."""
    until = time.monotonic() + seconds
    with state.hub.subscribe([task_id]) as subscription, state.keyring.stay(caller, subscription.wake) as stay:
        while not state.hub.closing.is_set():
            subscription.clear()
            now = await state.hub.reads.once(("state", task_id), partial(events.state, state.pool, task_id))
            left = until - time.monotonic()
            if now.status in TERMINAL or left <= 0 or not await stay.goes_on():
                break
            subscription.seen = now.last_seq
            await subscription.news(left)
        row = await tasks.get(state.pool, task_id)
        assert row is not None, "tasks are never deleted"
        if not await stay.goes_on():
            raise KeyEnded
    return row, row.status in TERMINAL

"""`?wait=`: holds the answer back until the task has ended or the time is up. Leaving cancels nothing."""

import asyncio
import time
from contextlib import suppress
from uuid import UUID

from litestar.datastructures import State

from shared.db import Row
from shared.states import TERMINAL
from shared.store import tasks


async def wait_for_end(state: State, task_id: UUID, seconds: float) -> tuple[Row, bool]:
    """The task as it is now, and whether it has ended."""
    until = time.monotonic() + seconds
    with state.hub.subscribe(task_id) as news:
        while True:
            news.clear()
            row = await tasks.get(state.pool, task_id)
            assert row is not None, "tasks are never deleted"
            left = until - time.monotonic()
            if row["status"] in TERMINAL or left <= 0 or state.hub.closing.is_set():
                return row, row["status"] in TERMINAL
            with suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), left)

"""Group commit: submissions that come while a call is under way go together in the next one.

A commit that notifies holds a lock on the whole database until it is on disk, so that single submits would queue up
for the disk one by one, however many connections they came over.
"""

import asyncio
from collections import deque
from contextvars import Context

from windlass.shared.db import UNSTORABLE, Database
from windlass.shared.store import tasks
from windlass.shared.store.rows import TaskRow
from windlass.shared.store.tasks import Submission

MOST_PER_CALL = 100

Waiting = tuple[Submission, "asyncio.Future[TaskRow]"]


class GroupCommit:
    """Takes submissions without keys or dependencies, which cannot refuse each other; each caller waits for its own."""

    def __init__(self, pool: Database) -> None:
        self._pool = pool
        self._gathered: deque[Waiting] = deque()
        self._writing: asyncio.Task[None] | None = None

    async def submit(self, submission: Submission) -> TaskRow:
        future: asyncio.Future[TaskRow] = asyncio.get_running_loop().create_future()
        self._gathered.append((submission, future))
        if self._writing is None:
            # What it writes about is not the one request that happened to begin it.
            self._writing = asyncio.create_task(self._write_all(), context=Context())
        return await future

    async def _write_all(self) -> None:
        while self._gathered:
            await self._write([self._gathered.popleft() for _ in range(min(len(self._gathered), MOST_PER_CALL))])
        self._writing = None

    async def _write(self, batch: list[Waiting]) -> None:
        try:
            rows = await tasks.submit(self._pool, [submission for submission, _ in batch])
        except UNSTORABLE as error:
            if len(batch) == 1:
                fail(batch, error)
            for each in batch if len(batch) > 1 else ():
                await self._write([each])
        except Exception as error:  # noqa: BLE001 - raised again in the requests that wait for it
            fail(batch, error)
        else:
            stored = {row.task_id: row for row in rows}
            for submission, future in batch:
                if not future.done():
                    future.set_result(stored[submission.task_id])


def fail(batch: list[Waiting], error: BaseException) -> None:
    for _, future in batch:
        if not future.done():
            future.set_exception(error)

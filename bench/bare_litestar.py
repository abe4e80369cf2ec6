"""The measure of the API: Litestar on the same server with one statement behind each handler, and nothing else.

`python -m bench.bare_litestar DATABASE_URL PORT LOOP`: `POST /tasks` does one INSERT with every column that a submit
writes, `GET /tasks/{id}` one SELECT of a whole row. What is posted while an INSERT is under way goes together in the
next one, as with us: who commits each request alone waits for the disk each time, and is no ceiling.
"""

import asyncio
import sys
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import uvicorn
from litestar import Litestar, Request, get, post
from litestar.datastructures import State
from uuid_utils.compat import uuid7

from windlass.services.api.tasks.group_commit import MOST_PER_CALL
from windlass.shared import db
from windlass.shared.settings import Settings

INSERT = """
INSERT INTO bare_tasks (
    task_id, actor, task_type, provider, status, priority, payload, max_retries, timeout_seconds, max_age_seconds,
    expires_at, available_at, created_at, updated_at, user_id, tags, project_id, workflow_id, workflow_run_id,
    interaction_id, parent_task_id, depends_on, dedupe_key, unmet)
SELECT t.task_id, t.actor, t.task_type, 'probe', 'queued', t.priority, t.payload, t.max_retries, 300, NULL,
    NULL, clock_timestamp(), clock_timestamp(), clock_timestamp(), 'bench', t.tags, t.project_id, NULL, NULL,
    NULL, NULL, '{}', NULL, 0
FROM jsonb_to_recordset($1::text::jsonb) AS t (
    task_id uuid, actor text, task_type text, priority smallint, payload jsonb, max_retries integer, tags text[],
    project_id text)
"""
UNSAID: dict[str, Any] = {"priority": 2, "max_retries": 3, "tags": []}


class Gathered:
    """Rows that wait for the INSERT under way, and then go in the next one."""

    def __init__(self, pool: db.Database) -> None:
        self._pool = pool
        self._waiting: deque[tuple[dict[str, Any], asyncio.Future[None]]] = deque()
        self._writing: asyncio.Task[None] | None = None

    async def store(self, row: dict[str, Any]) -> None:
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((row, stored))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())
        await stored

    async def _write_all(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST_PER_CALL))]
            try:
                await self._pool.execute(INSERT, db.as_json([row for row, _ in batch]))
            except Exception as error:  # noqa: BLE001 - raised again in the requests that wait for it
                for _, stored in batch:
                    stored.set_exception(error)
            else:
                for _, stored in batch:
                    stored.set_result(None)
        self._writing = None


@post("/tasks", status_code=201)
async def submit(request: Request[Any, Any, Any], state: State) -> dict[str, Any]:
    task_id = uuid7()
    await state.gathered.store({**UNSAID, **await request.json(), "task_id": task_id})
    return {"task_id": task_id}


@get("/tasks/{task_id:uuid}")
async def read(state: State, task_id: UUID) -> dict[str, Any]:
    return dict(await state.pool.fetchrow("SELECT * FROM tasks WHERE task_id = $1", task_id))


def create_app(database_url: str) -> Litestar:
    @asynccontextmanager
    async def connected(app: Litestar) -> AsyncIterator[None]:
        app.state.pool = await db.open_pool(Settings(database_url=database_url), "bare", most=10)
        app.state.gathered = Gathered(app.state.pool)
        yield
        app.state.pool.terminate()

    return Litestar([submit, read], lifespan=[connected], logging_config=None, openapi_config=None)


def main() -> None:
    database_url, port, loop = sys.argv[1:]
    uvicorn.run(create_app(database_url), host="127.0.0.1", port=int(port), loop=loop, log_level="warning")


if __name__ == "__main__":
    main()

"""The measure of the API: Litestar on the same server with one statement behind each handler, and nothing else.

`python -m bench.bare_litestar DATABASE_URL PORT LOOP`: `POST /tasks` does one INSERT with every column that a submit
writes, `GET /tasks/{id}` one SELECT of a whole row.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import uvicorn
from litestar import Litestar, Request, get, post
from litestar.datastructures import State
from uuid_utils.compat import uuid7

from windlass.shared import db
from windlass.shared.settings import Settings

INSERT = """
INSERT INTO bare_tasks (
    task_id, actor, task_type, provider, status, priority, payload, max_retries, timeout_seconds, max_age_seconds,
    expires_at, available_at, created_at, updated_at, user_id, tags, project_id, workflow_id, workflow_run_id,
    interaction_id, parent_task_id, depends_on, dedupe_key, unmet)
VALUES ($1, $2, $3, $4, 'queued', $5, $6, $7, $8, NULL, NULL, clock_timestamp(), clock_timestamp(), clock_timestamp(),
    $9, $10, $11, NULL, NULL, NULL, NULL, '{}', NULL, 0)
RETURNING task_id
"""


@post("/tasks", status_code=201)
async def submit(request: Request[Any, Any, Any], state: State) -> dict[str, Any]:
    body = await request.json()
    task_id = await state.pool.fetchval(
        INSERT, uuid7(), body["actor"], body.get("task_type"), "probe", body.get("priority", 2), body["payload"],
        body.get("max_retries", 3), 300.0, "bench", body.get("tags", []), body.get("project_id"),
    )  # fmt: skip
    return {"task_id": task_id}


@get("/tasks/{task_id:uuid}")
async def read(state: State, task_id: UUID) -> dict[str, Any]:
    return dict(await state.pool.fetchrow("SELECT * FROM tasks WHERE task_id = $1", task_id))


def create_app(database_url: str) -> Litestar:
    @asynccontextmanager
    async def connected(app: Litestar) -> AsyncIterator[None]:
        app.state.pool = await db.open_pool(Settings(database_url=database_url), "bare", most=10)
        yield
        app.state.pool.terminate()

    return Litestar([submit, read], lifespan=[connected], logging_config=None, openapi_config=None)


def main() -> None:
    database_url, port, loop = sys.argv[1:]
    uvicorn.run(create_app(database_url), host="127.0.0.1", port=int(port), loop=loop, log_level="warning")


if __name__ == "__main__":
    main()

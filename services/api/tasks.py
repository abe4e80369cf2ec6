"""Tasks over REST: submit, read, cancel, revive."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from litestar import Request, Response, delete, get, post
from litestar.datastructures import State
from litestar.params import Parameter

from services.api.auth import Caller, require_admin, require_writer
from services.api.errors import Problem
from services.api.schemas import list_document, task_document
from services.api.submission import accept, field_problem
from services.api.waiting import wait_for_end
from shared import store
from shared.db import Database, Row
from shared.states import State as TaskState
from shared.store.listing import Filter
from shared.store.tasks import Submission, UnknownDependency

MOST_PER_BATCH = 1000

Asked = Request[Caller, None, State]
Wait = Annotated[float | None, Parameter(ge=0, le=50, description="Seconds to hold the answer back for its end.")]
Limit = Annotated[int, Parameter(ge=1, le=500)]


@post("/tasks", status_code=201)
async def submit_task(request: Asked, state: State, wait: Wait = None) -> Response[dict[str, Any]]:
    """Accepts a task: once it answers 201 the task is stored for good."""
    require_writer(request.user)
    submission = accept(await read_json(request), request.user, state.settings)
    (row,) = await submit(state.pool, [submission])
    status = 201
    if wait is not None:
        row, ended = await wait_for_end(state, row["task_id"], wait)
        status = 200 if ended else 202
    location = f"/api/v1/tasks/{row['task_id']}"
    return Response(task_document(row, request.user), status_code=status, headers={"Location": location})


@post("/tasks/batch", status_code=201)
async def submit_batch(request: Asked, state: State) -> dict[str, Any]:
    """Accepts up to 1,000 tasks, all or none."""
    require_writer(request.user)
    body = await read_json(request)
    wanted = body.get("tasks") if isinstance(body, dict) else None
    if not isinstance(wanted, list) or not 0 < len(wanted) <= MOST_PER_BATCH:
        raise field_problem("/tasks", "invalid-batch", f"a batch is a list of 1 to {MOST_PER_BATCH} tasks")
    submissions = [
        accept(each, request.user, state.settings, below=f"/tasks/{number}") for number, each in enumerate(wanted)
    ]
    await submit(state.pool, submissions)
    return {"tasks": [{"task_id": each.task_id, "deduplicated": False} for each in submissions]}


@get("/tasks")
async def list_tasks(  # noqa: PLR0917 - Litestar passes them by name
    request: Asked,
    state: State,
    status: list[TaskState] | None = None,
    actor: str | None = None,
    provider: str | None = None,
    lane: str | None = None,
    user_id: str | None = None,
    tag: list[str] | None = None,
    project_id: str | None = None,
    workflow_id: str | None = None,
    workflow_run_id: str | None = None,
    interaction_id: str | None = None,
    parent_task_id: UUID | None = None,
    error_type: str | None = None,
    created_after: datetime | None = None,
    created_before: datetime | None = None,
    updated_after: datetime | None = None,
    cursor: UUID | None = None,
    limit: Limit = 50,
    full: bool = False,  # noqa: FBT001, FBT002
) -> dict[str, Any]:
    """Tasks, newest first."""
    if not request.user.sees_everything:
        if user_id not in {None, request.user.user_id}:
            return {"items": []}
        user_id = request.user.user_id
    wanted = Filter(
        status=status, actor=actor, provider=provider, lane=lane, user_id=user_id, tag=tag, project_id=project_id,
        workflow_id=workflow_id, workflow_run_id=workflow_run_id, interaction_id=interaction_id,
        parent_task_id=parent_task_id, error_type=error_type, created_after=created_after,
        created_before=created_before, updated_after=updated_after,
    )  # fmt: skip
    rows = await store.listing.newest(state.pool, wanted, before=cursor, limit=limit + 1)
    document: dict[str, Any] = {"items": [list_document(row, request.user, full=full) for row in rows[:limit]]}
    if len(rows) > limit:
        document["next_cursor"] = rows[limit - 1]["task_id"]
    return document


@get("/tasks/{task_id:uuid}")
async def get_task(request: Asked, state: State, task_id: UUID, wait: Wait = None) -> Response[dict[str, Any]]:
    """One task, whole; with `wait` it answers 202 when the task has not ended in time."""
    row = await visible_task(state.pool, request.user, task_id)
    ended = True
    if wait is not None:
        row, ended = await wait_for_end(state, task_id, wait)
    return Response(task_document(row, request.user), status_code=200 if ended else 202)


@post("/tasks/{task_id:uuid}/cancel", status_code=200)
async def cancel_task(request: Asked, state: State, task_id: UUID) -> Response[dict[str, Any]]:
    """200 when it is cancelled, 202 while its worker is stopping it."""
    return await cancel(request, state, task_id)


@delete("/tasks/{task_id:uuid}", status_code=200)
async def delete_task(request: Asked, state: State, task_id: UUID) -> Response[dict[str, Any]]:
    """The same as cancel: tasks are kept for ever."""
    return await cancel(request, state, task_id)


@post("/tasks/{task_id:uuid}/retry", status_code=200)
async def retry_task(request: Asked, state: State, task_id: UUID) -> dict[str, Any]:
    """Gives a dead or cancelled task a new life."""
    require_writer(request.user)
    before = await visible_task(state.pool, request.user, task_id)
    row = await store.tasks.revive(state.pool, task_id)
    if row is None or row["last_seq"] == before["last_seq"]:
        detail = f"only a dead or cancelled task can be revived; this one is {before['status']}"
        raise Problem(409, "not-revivable", detail)
    return task_document(row, request.user)


@post("/tasks/requeue-orphaned", status_code=200)
async def requeue_orphaned(request: Asked, state: State) -> dict[str, Any]:
    """Runs the stale sweep now, for leases that ran out at least `max_age_seconds` ago."""
    require_admin(request.user)
    body = await read_json(request) if await request.body() else {}
    age = body.get("max_age_seconds", 0) if isinstance(body, dict) else None
    if isinstance(age, bool) or not isinstance(age, int | float) or age < 0:
        raise field_problem("/max_age_seconds", "invalid-request", "a number of seconds, 0 or more")
    rows = await store.tasks.stall(state.pool, expired_for_seconds=age)
    return {"recovered": len(rows)}


async def submit(db: Database, submissions: Sequence[Submission]) -> list[Row]:
    try:
        return await store.tasks.submit(db, submissions)
    except UnknownDependency as error:
        raise field_problem("/depends_on", "unknown-dependency", str(error)) from error


async def cancel(request: Asked, state: State, task_id: UUID) -> Response[dict[str, Any]]:
    require_writer(request.user)
    await visible_task(state.pool, request.user, task_id)
    row = await store.tasks.cancel(state.pool, task_id)
    assert row is not None, "tasks are never deleted"
    if row["status"] in {TaskState.COMPLETED, TaskState.DEAD}:
        raise Problem(409, "not-cancellable", f"the task is {row['status']} already")
    stopping = row["status"] != TaskState.CANCELLED
    return Response(task_document(row, request.user), status_code=202 if stopping else 200)


async def visible_task(db: Database, caller: Caller, task_id: UUID) -> Row:
    """A foreign task is as if it did not exist."""
    row = await store.tasks.get(db, task_id)
    if row is None or not caller.may_see(row["user_id"]):
        raise Problem(404, "task-not-found", f"there is no task {task_id}")
    return row


async def read_json(request: Asked) -> Any:
    try:
        return await request.json()
    except Problem:
        raise
    except Exception as error:
        raise Problem(400, "malformed-json", "the body is not JSON that can be read") from error


HANDLERS = [
    submit_task, submit_batch, list_tasks, get_task, cancel_task, delete_task, retry_task, requeue_orphaned,
]  # fmt: skip

"""Tasks over REST: submit, read, and read the history."""

from typing import Annotated, Any
from uuid import UUID

from litestar import Request, Response, Router, get, post
from litestar.datastructures import State
from litestar.params import Parameter
from pydantic import ValidationError
from uuid_utils.compat import uuid7

from services.api.auth import Caller, require_writer
from services.api.errors import Problem, invalid_fields
from services.api.schemas import NewTask, event_document, task_document
from services.api.stream import stream_task
from services.api.waiting import wait_for_end
from shared import store
from shared.db import Database, Row
from shared.payloads import DEFAULT_PROVIDER, PAYLOADS, TIMEOUT_SECONDS
from shared.settings import Settings
from shared.store.tasks import Submission, UnknownDependency

Wait = Annotated[float | None, Parameter(ge=0, le=50)]


@post("/tasks", status_code=201)
async def submit_task(
    request: Request[Caller, None, State], state: State, wait: Wait = None
) -> Response[dict[str, Any]]:
    """Accepts a task: once it answers 201 the task is stored for good."""
    require_writer(request.user)
    submission = accept(await read_json(request), request.user, state.settings)
    try:
        (row,) = await store.tasks.submit(state.pool, [submission])
    except UnknownDependency as error:
        errors = [{"pointer": "/depends_on", "detail": str(error)}]
        raise Problem(422, "unknown-dependency", str(error), errors=errors) from error
    status = 201
    if wait is not None:
        row, ended = await wait_for_end(state, row["task_id"], wait)
        status = 200 if ended else 202
    location = f"/api/v1/tasks/{row['task_id']}"
    return Response(task_document(row), status_code=status, headers={"Location": location})


@get("/tasks/{task_id:uuid}")
async def get_task(
    request: Request[Caller, None, State], state: State, task_id: UUID, wait: Wait = None
) -> Response[dict[str, Any]]:
    row = await visible_task(state.pool, request.user, task_id)
    if wait is None:
        return Response(task_document(row))
    row, ended = await wait_for_end(state, task_id, wait)
    return Response(task_document(row), status_code=200 if ended else 202)


@get("/tasks/{task_id:uuid}/events")
async def list_events(  # noqa: PLR0917 - Litestar passes them by name
    request: Request[Caller, None, State],
    state: State,
    task_id: UUID,
    after: Annotated[int, Parameter(ge=0)] = 0,
    event_type: Annotated[list[str] | None, Parameter(query="type")] = None,
    limit: Annotated[int, Parameter(ge=1, le=1000)] = 200,
) -> dict[str, Any]:
    """The task's whole story, oldest first."""
    await visible_task(state.pool, request.user, task_id)
    rows = await store.events.page(state.pool, task_id, after=after, limit=limit + 1, types=event_type)
    document: dict[str, Any] = {"items": [event_document(row) for row in rows[:limit]]}
    if len(rows) > limit:
        document["next_cursor"] = str(rows[limit - 1]["seq"])
    return document


@get("/tasks/{task_id:uuid}/stream")
async def stream(
    request: Request[Caller, None, State],
    state: State,
    task_id: UUID,
    after: str | None = None,
    last_event_id: Annotated[str | None, Parameter(header="Last-Event-ID")] = None,
) -> Response[Any]:
    """The same story as server-sent events, from the beginning or from the last one that the client has seen."""
    row = await visible_task(state.pool, request.user, task_id)
    return await stream_task(state, row, last_event_id or after)


async def visible_task(db: Database, caller: Caller, task_id: UUID) -> Row:
    """A foreign task is as if it did not exist."""
    row = await store.tasks.get(db, task_id)
    if row is None or not caller.may_see(row["user_id"]):
        raise Problem(404, "task-not-found", f"there is no task {task_id}")
    return row


async def read_json(request: Request[Caller, None, State]) -> Any:
    try:
        return await request.json()
    except Exception as error:
        raise Problem(400, "malformed-json", "the body is not JSON that can be read") from error


def accept(body: Any, caller: Caller, settings: Settings) -> Submission:
    """Checks everything that can be checked before the task is stored."""
    try:
        wanted = NewTask.model_validate(body)
    except ValidationError as error:
        raise invalid_fields(error, "invalid-task") from error
    if wanted.actor not in PAYLOADS:
        known = ", ".join(sorted(PAYLOADS))
        raise field_problem("/actor", "unknown-actor", f"no actor is called {wanted.actor}; there are: {known}")
    provider = wanted.provider or DEFAULT_PROVIDER[wanted.actor]
    configured = settings.providers.get(provider)
    if configured is None or configured.actor != wanted.actor:
        raise field_problem("/provider", "unknown-provider", f"no provider {provider} does {wanted.actor} tasks")
    if wanted.user_id is not None and not caller.is_admin:
        raise field_problem("/user_id", "forbidden", "only an admin submits for somebody else", status=403)
    try:
        payload = PAYLOADS[wanted.actor].model_validate(wanted.payload)
    except ValidationError as error:
        raise invalid_fields(error, "invalid-payload", below="/payload") from error
    refuse_faults(payload, caller, settings)
    return Submission(
        task_id=uuid7(),
        actor=wanted.actor,
        provider=provider,
        payload=wanted.payload,
        user_id=wanted.user_id or caller.user_id,
        timeout_seconds=wanted.timeout_seconds or TIMEOUT_SECONDS[wanted.actor],
        run_at=wanted.run_at.isoformat() if wanted.run_at else None,
        **wanted.model_dump(
            include={
                "task_type", "priority", "max_retries", "max_age_seconds", "delay_seconds", "tags", "project_id",
                "workflow_id", "parent_task_id", "depends_on",
            }
        ),
    )  # fmt: skip


def refuse_faults(payload: Any, caller: Caller, settings: Settings) -> None:
    """A probe that harms its worker is for drills only."""
    outcome = getattr(payload, "outcome", None)
    if outcome in {"crash", "hang"} and not (caller.is_admin and settings.probe_faults):
        detail = f"`{outcome}` needs an admin and WINDLASS_PROBE_FAULTS=1"
        raise field_problem("/payload/outcome", "forbidden", detail, status=403)


def field_problem(pointer: str, code: str, detail: str, *, status: int = 422) -> Problem:
    return Problem(status, code, detail, errors=[{"pointer": pointer, "detail": detail}])


router = Router("/api/v1", route_handlers=[submit_task, get_task, list_events, stream])

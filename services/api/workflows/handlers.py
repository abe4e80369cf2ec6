"""Workflows over REST: submit, list, read, resume, cancel."""

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from litestar import Response, get, post
from litestar.datastructures import State
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, FromQuery, QueryParameter
from pydantic import ConfigDict, Field, ValidationError

from windlass.services.api.access.audit import audit
from windlass.services.api.access.auth import Caller, require_writer
from windlass.services.api.access.reasons import Reason, read_reason
from windlass.services.api.http.bodies import read_json
from windlass.services.api.http.errors import Problem, invalid_fields
from windlass.services.api.http.pages import page
from windlass.services.api.streams.handlers import LastEventId
from windlass.services.api.tasks.handlers import REPLAYED, Asked, IdempotencyKey, json_response, refusals_explained
from windlass.services.api.tasks.listing import Cursor, Limit, in_utc
from windlass.services.api.tasks.long_poll import KeyEnded
from windlass.services.api.tasks.submission import check_idempotency_key
from windlass.services.api.workflows.documents import head_document, whole_document
from windlass.services.api.workflows.stream import stream_workflow
from windlass.services.api.workflows.submission import accept
from windlass.shared import tracing
from windlass.shared.features.workflows import operations
from windlass.shared.features.workflows.operations import Resumption
from windlass.shared.features.workflows.reporting import write_change
from windlass.shared.forms import Form
from windlass.shared.store.rows import WorkflowRow
from windlass.shared.store.workflows import reading, submitting
from windlass.shared.workflow_states import WorkflowStatus

WaitForIt = Annotated[
    float | None, QueryParameter(ge=0, le=50, description="Seconds to hold the answer back for its end.")
]


class Resume(Form):
    """How an escalated workflow goes on."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    retry: Annotated[
        Resumption,
        Field(strict=False, description="What gets a new life: what failed, with what it had buried; also what was "
              "cancelled behind it; or nothing."),
    ] = Resumption.FAILED  # fmt: skip
    reason: Reason | None = None


@post("/workflows", status_code=201)
async def submit_workflow(
    request: Asked, state: State, idempotency_key: IdempotencyKey = None
) -> Response[dict[str, Any]]:
    """Accepts a graph of up to 1,000 tasks, all or none: once it answers 201 they are stored for good."""
    require_writer(request.user)
    check_idempotency_key(idempotency_key)
    body = await read_json(request)
    with tracing.submitting() as span:
        wanted = accept(body, request.user, state.settings, state.registry.actors, idempotency_key)
        with refusals_explained(wanted.submissions, batch=True):
            stored = await submitting.submit(state.pool, wanted.workflow, wanted.nodes, wanted.submissions)
        span.note(messaging__batch__message_count=len(wanted.submissions))
    row = await reading.get(state.pool, stored.workflow_id)
    assert row is not None, "workflows are never deleted"
    headers = {"Location": f"/api/v1/workflows/{row.workflow_id}"}
    document = await whole_document(state.pool, row)
    if stored.is_new:
        write_change(row.workflow_id, "submit", name=row.name, user_id=row.user_id, status=row.status)
        return json_response(document, 201, headers)
    return json_response({**document, "deduplicated": True}, 200, {**headers, **REPLAYED})


@get("/workflows")
async def list_workflows(  # noqa: PLR0917 - Litestar passes them by name
    request: Asked,
    state: State,
    status: Annotated[
        list[WorkflowStatus] | None, QueryParameter(description="Repeat it for several: any of them.")
    ] = None,
    name: FromQuery[str | None] = None,
    tag: Annotated[list[str] | None, QueryParameter(description="Repeat it for several: all of them.")] = None,
    user_id: FromQuery[str | None] = None,
    created_after: FromQuery[datetime | None] = None,
    created_before: FromQuery[datetime | None] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response[dict[str, Any]]:
    """Workflows, newest first, without their nodes."""
    refuse_nul(name, user_id, *(tag or ()))
    await state.catch_up_on_workflows.before_read()
    wanted = reading.Wanted(
        status=status,
        name=name,
        tag=tag,
        user_id=user_id,
        created_after=in_utc(created_after),  # type: ignore[arg-type]
        created_before=in_utc(created_before),  # type: ignore[arg-type]
    )

    async def read(position: Any, number: int) -> list[tuple[Any, Any]]:
        rows = await reading.newest(state.lists, wanted, owner=request.user.own, before=position, limit=number)
        return [(row.workflow_id, head_document(row)) for row in rows]

    return await page(read, cursor=cursor, limit=limit)


@get("/workflows/{workflow_id:uuid}")
async def get_workflow(
    request: Asked, state: State, workflow_id: FromPath[UUID], wait: WaitForIt = None
) -> Response[dict[str, Any]]:
    """One workflow with its nodes and edges; with `wait` it answers at its end, or when it is escalated, and 202 when
    neither comes in time."""
    row = await visible_workflow(state, request.user, workflow_id)
    if wait is not None:
        row = await wait_until_it_stands(state, request.user, row, wait)
    in_time = wait is None or row.status != WorkflowStatus.RUNNING
    return json_response(await whole_document(state.pool, row), 200 if in_time else 202)


@get(
    "/workflows/{workflow_id:uuid}/stream",
    media_type="text/event-stream",
    responses={204: ResponseSpec(None, description="It has ended, and the client has seen everything.")},
)
async def watch_workflow(
    request: Asked,
    state: State,
    workflow_id: FromPath[UUID],
    after: Annotated[str | None, QueryParameter(description="Go on after the event with this id.")] = None,
    last_event_id: LastEventId = None,
) -> Response[Any]:
    """What becomes of it: `workflow` on every change, and its tasks' `progress`; until it has ended."""
    row = await visible_workflow(state, request.user, workflow_id)
    return await stream_workflow(state, request.user, row, last_event_id or after)


@post("/workflows/{workflow_id:uuid}/resume", status_code=202)
async def resume_workflow(request: Asked, state: State, workflow_id: FromPath[UUID]) -> Response[dict[str, Any]]:
    """Lets an escalated workflow go on."""
    require_writer(request.user)
    try:
        wanted = Resume.model_validate(await read_json(request, optional=True))
    except ValidationError as error:
        raise invalid_fields(error, "invalid-request", Resume) from error
    before = await visible_workflow(state, request.user, workflow_id)
    await audit_foreign(request, "workflow.resume", before, {"retry": wanted.retry}, reason=wanted.reason)
    row = await operations.resume(state.features, workflow_id, wanted.retry)
    assert row is not None, "workflows are never deleted"
    if row.was != WorkflowStatus.ESCALATED:
        raise Problem(409, "not-escalated", f"only an escalated workflow is resumed; this one is {row.was}")
    return json_response(await whole_document(state.pool, row), 202)


@post("/workflows/{workflow_id:uuid}/cancel", status_code=200)
async def cancel_workflow(request: Asked, state: State, workflow_id: FromPath[UUID]) -> Response[dict[str, Any]]:
    """200 when it is cancelled, 202 while workers are stopping its tasks."""
    require_writer(request.user)
    reason = await read_reason(request)
    before = await visible_workflow(state, request.user, workflow_id)
    await audit_foreign(request, "workflow.cancel", before, {}, reason=reason)
    row = await operations.cancel(state.features, workflow_id)
    assert row is not None, "workflows are never deleted"
    if row.status in {WorkflowStatus.COMPLETED, WorkflowStatus.FAILED}:
        raise Problem(409, "not-cancellable", f"the workflow is {row.status} already")
    document = await whole_document(state.pool, row)
    return json_response(document, 200 if row.status == WorkflowStatus.CANCELLED else 202)


async def visible_workflow(state: State, caller: Caller, workflow_id: UUID) -> WorkflowRow:
    """The workflow after everything that has happened to it until now. A foreign workflow is as if it did not exist."""
    row = await operations.caught_up(state.pool, state.features, workflow_id)
    if row is None or not caller.may_see(row.user_id):
        raise Problem(404, "workflow-not-found", f"there is no workflow {workflow_id}")
    return row


async def wait_until_it_stands(state: State, caller: Caller, row: WorkflowRow, seconds: float) -> WorkflowRow:
    """The workflow as it is when nothing of it goes on by itself, or when the time is up."""
    until = time.monotonic() + seconds
    with state.hub.subscribe([row.workflow_id]) as subscription, state.keyring.stay(caller, subscription.wake) as stay:
        while not state.hub.closing.is_set():
            subscription.clear()
            now = await operations.caught_up(state.pool, state.features, row.workflow_id)
            assert now is not None, "workflows are never deleted"
            left = until - time.monotonic()
            if not await stay.goes_on():
                raise KeyEnded
            row = now
            if row.status != WorkflowStatus.RUNNING or left <= 0:
                break
            await subscription.news(min(left, state.settings.safety_poll_seconds))
    return row


async def audit_foreign(
    request: Asked, action: str, row: WorkflowRow, details: dict[str, Any], *, reason: str | None
) -> None:
    """An operator's hand on somebody else's workflow; on its own it is a user like any other."""
    if row.user_id != request.user.user_id:
        about = {"owner": row.user_id, "status": row.status, **details}
        await audit(request, action, row.workflow_id, about, reason=reason)


def refuse_nul(*values: str | None) -> None:
    if any("\0" in value for value in values if value is not None):
        raise Problem(422, "unstorable-value", "a value cannot be compared: it contains a NUL character")


HANDLERS: Sequence[Any] = [
    submit_workflow, list_workflows, get_workflow, watch_workflow, resume_workflow, cancel_workflow,
]  # fmt: skip

"""People who are asked: what waits for their word, and what they say."""

from typing import Annotated, Any
from uuid import UUID

from litestar import Response, get, post
from litestar.datastructures import State
from litestar.params import FromPath
from pydantic import AfterValidator, ConfigDict, Field, ValidationError

from windlass.services.api.access.audit import audit
from windlass.services.api.access.auth import Caller, require_writer
from windlass.services.api.http.bodies import read_json
from windlass.services.api.http.errors import Problem, invalid_fields
from windlass.services.api.http.pages import page
from windlass.services.api.tasks.handlers import Asked, visible_task
from windlass.services.api.tasks.listing import Cursor, Limit
from windlass.services.api.tasks.schemas import task_document
from windlass.shared.db import Database
from windlass.shared.forms import Form
from windlass.shared.scrubbing import withhold_label
from windlass.shared.store.access import audit as audit_log
from windlass.shared.store.rows import TaskRow
from windlass.shared.store.workflows import approvals
from windlass.shared.store.workflows.approvals import Decision

SAID_OF_REFUSALS = {
    "already-decided": "somebody has decided about this task already",
    "not-waiting-for-approval": "the task does not wait for anybody's word",
}


class Comment(Form):
    """A person's word."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    comment: Annotated[
        Annotated[str, Field(min_length=1, max_length=2000), AfterValidator(withhold_label)] | None,
        Field(description="Why; it is kept with the decision."),
    ] = None


@get("/approvals")
async def list_approvals(
    request: Asked, state: State, cursor: Cursor = None, limit: Limit = 50
) -> Response[dict[str, Any]]:
    """Tasks that wait for a person's word, the oldest first: the caller's own, or all for who may see all."""

    async def read(position: Any, number: int) -> list[tuple[Any, Any]]:
        rows = await approvals.waiting(state.pool, owner=request.user.own, after=position, limit=number)
        return [(row.task_id, asked_document(row)) for row in rows]

    return await page(read, cursor=cursor, limit=limit)


@post("/tasks/{task_id:uuid}/approve", status_code=200)
async def approve_task(request: Asked, state: State, task_id: FromPath[UUID]) -> dict[str, Any]:
    """Lets a task start that waits for somebody's word."""
    return await decide(request, state, task_id, Decision.APPROVED)


@post("/tasks/{task_id:uuid}/reject", status_code=200)
async def reject_task(request: Asked, state: State, task_id: FromPath[UUID]) -> dict[str, Any]:
    """Cancels a task that waits for somebody's word; what depends on it is buried."""
    return await decide(request, state, task_id, Decision.REJECTED)


async def decide(request: Asked, state: State, task_id: UUID, decision: Decision) -> dict[str, Any]:
    require_writer(request.user)
    try:
        said = Comment.model_validate(await read_json(request, optional=True))
    except ValidationError as error:
        raise invalid_fields(error, "invalid-request", Comment) from error
    before = await visible_task(state.pool, request.user, task_id)
    row = await approvals.decide(state.pool, task_id, decision, by=request.user.user_id, comment=said.comment)
    assert row is not None, "tasks are never deleted"
    if row.refusal is not None:
        raise Problem(409, row.refusal, SAID_OF_REFUSALS[row.refusal])
    await keep(request, state, f"task.{'approve' if decision is Decision.APPROVED else 'reject'}", before, said.comment)
    return task_document(row, request.user, state.media_links)


async def keep(request: Asked, state: State, action: str, task: TaskRow, comment: str | None) -> None:
    """Every decision is in the audit log, also what users decide about their own: once, because it is decided once."""
    details = {"owner": task.user_id, **({} if comment is None else {"comment": comment})}
    if request.user.sees_everything:
        await audit(request, action, task.task_id, details)
        return
    await audit_log.record(
        state.pool,
        key_id=request.user.key_id,
        user_id=request.user.user_id,
        action=action,
        target=str(task.task_id),
        details=details,
    )


def asked_document(row: TaskRow) -> dict[str, Any]:
    return {
        "task_id": row.task_id,
        "user_id": row.user_id,
        "workflow_id": row.workflow_id,
        "key": row.workflow_key,
        "message": (row.approval or {}).get("message"),
        "since": row.asked_at,
        "expires_at": row.ask_expires_at,
    }


async def waiting_for(db: Database, caller: Caller) -> list[dict[str, Any]]:
    """What goes on only when a person has decided: of the caller's own, or of all for who may see all."""
    counts = await approvals.count_waiting(db, owner=caller.own)
    return [{"kind": kind, "count": number} for kind, number in counts.items() if number]


HANDLERS = [list_approvals, approve_task, reject_task]

"""Agent events over REST: list, read, delete."""

from typing import Annotated, Any
from uuid import UUID

from litestar import Response, delete, get
from litestar.datastructures import State
from litestar.params import FromPath, FromQuery, QueryParameter

from windlass.services.api.access.audit import audit
from windlass.services.api.access.auth import Caller, require_writer
from windlass.services.api.http.errors import Problem
from windlass.services.api.http.pages import LARGE_ROWS_AT_ONCE, page
from windlass.services.api.tasks.handlers import Asked
from windlass.services.api.tasks.listing import Cursor, Limit
from windlass.services.api.workflows.handlers import refuse_nul
from windlass.shared.db import Database
from windlass.shared.states import State as TaskState
from windlass.shared.store.memory import events
from windlass.shared.store.rows import AgentEventRow

SHOWN = tuple(name.strip() for name in events.SHOWN.split(","))


@get("/agent-events")
async def list_agent_events(  # noqa: PLR0917 - Litestar passes them by name
    request: Asked,
    state: State,
    task_id: FromQuery[UUID | None] = None,
    actor: FromQuery[str | None] = None,
    status: Annotated[TaskState | None, QueryParameter(description="How it ended.")] = None,
    subagent_type: FromQuery[str | None] = None,
    project_id: FromQuery[str | None] = None,
    workflow_id: FromQuery[str | None] = None,
    user_id: FromQuery[str | None] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response[dict[str, Any]]:
    """What agents did, newest first: the caller's own, or all for who may see all."""
    refuse_nul(actor, subagent_type, project_id, workflow_id, user_id)
    wanted = {
        "task_id": task_id, "actor": actor, "status": status, "subagent_type": subagent_type,
        "project_id": project_id, "workflow_id": workflow_id, "user_id": user_id,
    }  # fmt: skip
    await state.catch_up_on_memory.before_read()

    async def read(position: Any, number: int) -> list[tuple[Any, Any]]:
        rows = await events.newest(state.lists, wanted, owner=request.user.own, before=position, limit=number)
        return [(row.event_id, event_document(row)) for row in rows]

    return await page(read, cursor=cursor, limit=limit, at_once=LARGE_ROWS_AT_ONCE)


@get("/agent-events/{event_id:uuid}")
async def get_agent_event(request: Asked, state: State, event_id: FromPath[UUID]) -> dict[str, Any]:
    """One of them."""
    return event_document(await visible_event(state.pool, request.user, event_id))


@delete("/agent-events/{event_id:uuid}", status_code=204)
async def delete_agent_event(request: Asked, state: State, event_id: FromPath[UUID]) -> None:
    """Takes it out of the memory, with its vectors. The task and its history stay."""
    require_writer(request.user)
    row = await visible_event(state.pool, request.user, event_id)
    if row.user_id != request.user.user_id:
        await audit(request, "agent-event.delete", event_id, {"owner": row.user_id, "task_id": str(row.task_id)})
    await events.delete(state.pool, event_id)


async def visible_event(db: Database, caller: Caller, event_id: UUID) -> AgentEventRow:
    row = await events.get(db, event_id)
    if row is None or not caller.may_see(row.user_id):
        raise Problem(404, "agent-event-not-found", f"there is no agent event {event_id}")
    return row


def event_document(row: AgentEventRow) -> dict[str, Any]:
    return {name: row[name] for name in SHOWN}


HANDLERS = [list_agent_events, get_agent_event, delete_agent_event]

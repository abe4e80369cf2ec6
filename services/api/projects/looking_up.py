"""A project that the caller may see, and the refusals of the store in the client's terms."""

from typing import Any
from uuid import UUID

from litestar.datastructures import State

from windlass.services.api.access.audit import audit
from windlass.services.api.access.auth import Caller, require_writer
from windlass.services.api.http.errors import Problem
from windlass.services.api.projects.documents import run_document
from windlass.services.api.tasks.handlers import Asked
from windlass.shared.features.projects import operations
from windlass.shared.store import projects
from windlass.shared.store.projects import Status

REFUSALS = {
    "project-archived": "the project is archived: it is read, and nothing else",
    "project-running": "its queue is not idle; stop it first",
    "backlog-empty": "no item waits; add one, or requeue one",
    "item-not-waiting": "the item does not wait; requeue it first",
    "item-running": "a worker has the item's task; it is left alone until its run has ended",
    "item-done": "the item is done; requeue it, if it is to be run again",
}


async def visible_project(state: State, caller: Caller, project_id: UUID) -> Status:
    """The project after everything that has happened to it until now. A foreign project is as if it did not exist."""
    row = await operations.caught_up(state.pool, state.features, project_id)
    if row is None or not caller.may_see(row.user_id):
        raise Problem(404, "project-not-found", f"there is no project {project_id}")
    return row


async def changeable_project(
    request: Asked, state: State, project_id: UUID, action: str, *, reason: str | None = None
) -> Status:
    """The same, for whoever is about to change it: an operator's hand on somebody else's is written down first."""
    require_writer(request.user)
    row = await visible_project(state, request.user, project_id)
    if row.user_id != request.user.user_id:
        await audit(request, f"project.{action}", project_id, {"owner": row.user_id}, reason=reason)
    return row


def refuse(refusal: str | None, project_id: UUID, item_id: UUID | None = None) -> None:
    if refusal is None:
        return
    if refusal == "item-not-found":
        raise item_not_found(project_id, item_id)
    if refusal == "neighbour-not-found":
        detail = "there is no such other item in this project"
        raise Problem(422, "unknown-item", detail, errors=[{"pointer": "/before", "detail": detail}])
    raise Problem(409, refusal, REFUSALS[refusal])


def item_not_found(project_id: UUID, item_id: UUID | None) -> Problem:
    return Problem(404, "item-not-found", f"there is no item {item_id} in the project {project_id}")


async def already_running(state: State, caller: Caller, run_id: UUID) -> Problem:
    """With the run that is in the way."""
    run = await projects.run(state.pool, run_id)
    more: dict[str, Any] = {} if run is None else {"run": run_document(run, caller)}
    detail = f"the run {run_id} is open; wait for its end, or stop the queue"
    return Problem(409, "queue-already-running", detail, more=more)

"""A project's queue over REST: run, stop, stop by force, and what it does now; one project or many."""

import asyncio
import time
from typing import Annotated, Any
from uuid import UUID

from litestar import Response, get, post
from litestar.datastructures import State
from litestar.params import QueryParameter

from windlass.services.api.access.auth import Caller, require_writer
from windlass.services.api.access.reasons import read_reason
from windlass.services.api.http.bodies import read_json
from windlass.services.api.http.errors import Problem
from windlass.services.api.projects.documents import jobs_document, run_document, status_document
from windlass.services.api.projects.handlers import ProjectId, checked
from windlass.services.api.projects.looking_up import already_running, changeable_project, refuse, visible_project
from windlass.services.api.projects.schemas import Batch, Run
from windlass.services.api.tasks.handlers import Asked
from windlass.shared.features.projects import operations
from windlass.shared.store import projects
from windlass.shared.store.projects import Status

LOOK_AGAIN_SECONDS = 0.5
"""While a proof is waited for: what came of a run tells its own end, and not the project's."""

PATIENCE_SECONDS = 30.0

Patience = Annotated[
    float, QueryParameter(ge=0, le=50, description="Seconds to wait for the proof that nothing runs any more.")
]


@post("/projects/{project_id:uuid}/run", status_code=202)
async def run_project(request: Asked, state: State, project_id: ProjectId) -> dict[str, Any]:
    """Starts the first item that waits, or the one that is named; in a loop the next ones follow by themselves."""
    require_writer(request.user)
    wanted = checked(Run, await read_json(request, optional=True), code="invalid-run")
    await changeable_project(request, state, project_id, "run", reason=wanted.reason)
    return await run(request, state, project_id, wanted.mode, wanted.item_id)


@post("/projects/{project_id:uuid}/queue/stop", status_code=200)
async def stop_queue(request: Asked, state: State, project_id: ProjectId) -> dict[str, Any]:
    """What no worker has taken is withdrawn; what runs, ends; and nothing follows."""
    require_writer(request.user)
    await changeable_project(request, state, project_id, "stop", reason=await read_reason(request))
    return await stop(request, state, project_id)


@post("/projects/{project_id:uuid}/queue/force-stop", status_code=200)
async def force_stop_queue(
    request: Asked, state: State, project_id: ProjectId, wait: Patience = PATIENCE_SECONDS
) -> Response[dict[str, Any]]:
    """Cancels the run and all that came of it: 200 when it is proven that nothing of it lives, else 202."""
    require_writer(request.user)
    await changeable_project(request, state, project_id, "force-stop", reason=await read_reason(request))
    document = await force_stop(request, state, project_id, wait)
    return Response(document, status_code=200 if document["success"] else 202)


@get("/projects/{project_id:uuid}/queue/status")
async def project_queue_status(request: Asked, state: State, project_id: ProjectId) -> dict[str, Any]:
    """What the queue does now."""
    return status_document(await visible_project(state, request.user, project_id), request.user)


@post("/projects/batch", status_code=200)
async def change_many_projects(request: Asked, state: State, wait: Patience = PATIENCE_SECONDS) -> dict[str, Any]:
    """Runs or stops many; each has an answer of its own."""
    require_writer(request.user)
    wanted = checked(Batch, await read_json(request), code="invalid-project-batch")

    async def act(project_id: UUID) -> dict[str, Any]:
        try:
            await changeable_project(request, state, project_id, wanted.action, reason=wanted.reason)
            if wanted.action == "run":
                return answered(project_id, 202, await run(request, state, project_id, wanted.mode))
            if wanted.action == "stop":
                return answered(project_id, 200, await stop(request, state, project_id))
            queue = await force_stop(request, state, project_id, wait)
            return answered(project_id, 200 if queue["success"] else 202, queue)
        except Problem as problem:
            said = {"type": f"/problems/{problem.code}", "code": problem.code, "status": problem.status}
            said |= {"detail": problem.detail, **(problem.more or {})}
            return {"project_id": project_id, "status_code": problem.status, "problem": said}

    once = list(dict.fromkeys(wanted.project_ids))
    return {"items": list(await asyncio.gather(*map(act, once)))}


def answered(project_id: UUID, status: int, queue: dict[str, Any]) -> dict[str, Any]:
    return {"project_id": project_id, "status_code": status, "queue": queue}


async def run(request: Asked, state: State, project_id: UUID, mode: str, item_id: UUID | None = None) -> dict[str, Any]:
    started = await operations.start(state.features, project_id, mode=mode, item_id=item_id)
    if started.refusal == "queue-already-running" and started.run_id is not None:
        raise await already_running(state, request.user, started.run_id)
    refuse(started.refusal, project_id, item_id)
    return await status_now(state, request.user, project_id)


async def stop(request: Asked, state: State, project_id: UUID) -> dict[str, Any]:
    await operations.stop(state.features, project_id)
    return {"success": True, **await status_now(state, request.user, project_id)}


async def force_stop(request: Asked, state: State, project_id: UUID, wait: float) -> dict[str, Any]:
    run_id = await operations.force_stop(state.features, project_id)
    await operations.cancel_descendants(state.pool, project_id)
    row = await wait_for_proof(state, project_id, wait)
    killed = None if run_id is None else await projects.run(state.pool, run_id)
    is_proven = row.current_run_id is None or row.current_run_id != run_id
    return {
        "still_running": [],
        "open_jobs": jobs_document((killed.receipt or {}).get("open_jobs", []), request.user)
        if killed is not None and is_proven
        else [],
        **status_document(row, request.user),
        "success": is_proven,
        "killed_runs": [run_document(killed, request.user)] if killed is not None and killed.ended_at else [],
    }


async def wait_for_proof(state: State, project_id: UUID, seconds: float) -> Status:
    """The project as it is then."""
    until = time.monotonic() + seconds
    while True:
        is_proven = await operations.prove_stopped(state.features, project_id)
        row = await projects.get(state.pool, project_id)
        assert row is not None, "projects are never deleted"
        left = until - time.monotonic()
        if is_proven or row.forced_at is None or left <= 0 or state.hub.closing.is_set():
            return row
        still = [UUID(each["task_id"]) for each in (row.remains or {}).get("still_running", [])]
        with state.hub.subscribe([project_id, *still]) as subscription:
            await operations.cancel_descendants(state.pool, project_id)
            subscription.seen = 0
            await subscription.news(min(left, LOOK_AGAIN_SECONDS))


async def status_now(state: State, caller: Caller, project_id: UUID) -> dict[str, Any]:
    return status_document(await visible_project(state, caller, project_id), caller)


HANDLERS = [run_project, stop_queue, force_stop_queue, project_queue_status, change_many_projects]

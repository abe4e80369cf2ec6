"""Who runs tasks at the moment, and who did; one that is to finish and go, and, in a drill, one that is to die."""

from typing import Any
from uuid import UUID

from litestar import get, post
from litestar.datastructures import State
from litestar.params import FromPath

from windlass.services.api.access.audit import audit
from windlass.services.api.access.auth import require_admin, require_overview
from windlass.services.api.access.reasons import read_reason
from windlass.services.api.http.errors import Problem
from windlass.services.api.tasks.handlers import Asked, visible_task
from windlass.shared.states import State as TaskState
from windlass.shared.store.operating import wishes, workers
from windlass.shared.store.operating.workers import BusyWorker


@get("/workers")
async def list_workers(request: Asked, state: State) -> dict[str, Any]:
    """Hosts, processes and how much they carry for everybody: not for users."""
    require_overview(request.user)
    return {"items": [dict(row) for row in await workers.newest(state.pool)]}


@post("/workers/{worker_id:str}/drain", status_code=202)
async def drain_worker(request: Asked, state: State, worker_id: FromPath[str]) -> dict[str, Any]:
    """As if it were told to stop: it takes nothing new, what runs may end within `WINDLASS_DRAIN_SECONDS` and is handed
    back then, and its guardian starts another in its place."""
    require_admin(request.user)
    reason = await read_reason(request)
    row = await worker(state, worker_id)
    if row.state not in {"active", "stopping"}:
        raise Problem(409, "worker-not-running", f"this worker is {row.state} already")
    await audit(request, "worker.drain", worker_id, {"running": row.running}, reason=reason)
    await wishes.ask_to_drain(state.pool, worker_id, reason)
    return dict(await worker(state, worker_id))


@post("/tasks/{task_id:uuid}/kill-worker", status_code=202)
async def kill_worker(request: Asked, state: State, task_id: FromPath[UUID]) -> dict[str, Any]:
    """A drill, where `WINDLASS_PROBE_FAULTS` is on: the process that runs this task is killed, with all that it runs,
    and one sees what becomes of them."""
    require_admin(request.user)
    if not state.settings.probe_faults:
        raise Problem(
            403, "forbidden", "workers are killed on purpose where WINDLASS_PROBE_FAULTS is on, as in `make up`"
        )
    reason = await read_reason(request)
    task = await visible_task(state.pool, request.user, task_id)
    if task.status != TaskState.RUNNING or task.worker_id is None:
        raise Problem(409, "not-running", f"nobody runs this task: it is {task.status}")
    await audit(request, "task.kill-worker", task_id, {"worker_id": task.worker_id}, reason=reason)
    await wishes.kill(state.pool, task.worker_id, task_id)
    return {"task_id": task_id, "worker_id": task.worker_id, "attempt": task.attempt}


async def worker(state: State, worker_id: str) -> BusyWorker:
    row = None if "\0" in worker_id else await workers.get(state.pool, worker_id)
    if row is None:
        raise Problem(404, "worker-not-found", f"there is no worker {worker_id[:80]!r}")
    return row


HANDLERS = [list_workers, drain_worker, kill_worker]

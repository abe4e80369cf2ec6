"""Why a task is not running, as far as its reader may know."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from litestar import get
from litestar.datastructures import State
from litestar.params import FromPath

from windlass.services.api.access.auth import Caller
from windlass.services.api.operators.providers import holder_documents
from windlass.services.api.tasks.handlers import Asked, visible_task
from windlass.shared.db import Database
from windlass.shared.explanation import explain
from windlass.shared.reasons import Reason
from windlass.shared.settings import Settings
from windlass.shared.store.flow_control import flow, providers
from windlass.shared.store.operating import reports
from windlass.shared.store.reading.why import look_at
from windlass.shared.store.rows import TaskRow


@get("/tasks/{task_id:uuid}/why")
async def why(request: Asked, state: State, task_id: FromPath[UUID]) -> dict[str, Any]:
    """The first thing that stands between the task and its start, said by the dispatcher's own admission function."""
    row = await visible_task(state.pool, request.user, task_id)
    return await explanation_of(state.pool, row, request.user, state.settings)


async def explanation_of(db: Database, row: TaskRow, caller: Caller, settings: Settings) -> dict[str, Any]:
    (view,) = await providers.look(db, heard_within_seconds=settings.lease_seconds, only=[row.provider])
    task = await look_at(db, row, view.queues)
    said = await reports.recent(db, within_seconds=settings.report_seconds)
    broker = reports.broker_among(said)
    view = replace(view, broker=broker.state if broker else "connected")
    explanation = explain(view, task)
    details = dict(explanation.details)
    if explanation.reason is Reason.PROVIDER_LIMIT:
        details["holders"] = None
        if caller.sees_everything:
            details["holders"] = holder_documents(await flow.holders(db, row.provider), row.provider)
    return {"reason": explanation.reason, "message": explanation.message, "details": details}


HANDLERS = [why]

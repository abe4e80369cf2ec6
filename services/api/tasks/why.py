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
from windlass.shared import store
from windlass.shared.db import Database, Row
from windlass.shared.explanation import explain
from windlass.shared.reasons import Reason
from windlass.shared.settings import Settings


@get("/tasks/{task_id:uuid}/why")
async def why(request: Asked, state: State, task_id: FromPath[UUID]) -> dict[str, Any]:
    """The first thing that stands between the task and its start, said by the dispatcher's own admission function."""
    row = await visible_task(state.pool, request.user, task_id)
    return await explanation_of(state.pool, row, request.user, state.settings)


async def explanation_of(db: Database, row: Row, caller: Caller, settings: Settings) -> dict[str, Any]:
    task = await store.why.look_at(db, row)
    (view,) = await store.providers.look(db, heard_within_seconds=settings.lease_seconds, only=row["provider"])
    backlog = await store.providers.waiting_retries(db, settings.lanes, only=row["provider"])
    said = await store.reports.recent(db, within_seconds=settings.report_seconds)
    broker = store.reports.broker_among(said)
    view = replace(
        view,
        waiting_retries=backlog.get(row["provider"], 0),
        broker=broker.state if broker else "connected",
        lanes=settings.lanes,
    )
    explanation = explain(view, task)
    details = dict(explanation.details)
    if explanation.reason is Reason.PROVIDER_LIMIT:
        details["holders"] = None
        if caller.sees_everything:
            details["holders"] = holder_documents(await store.flow.holders(db, row["provider"]), row["provider"])
    return {"reason": explanation.reason, "message": explanation.message, "details": details}


HANDLERS = [why]

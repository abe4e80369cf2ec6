"""Lists of tasks over REST: filters, pages, and as much of each task as was asked for."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from litestar import get
from litestar.datastructures import State
from litestar.di import NamedDependency, Provide
from litestar.params import FromQuery, QueryParameter

from windlass.services.api.access.auth import Caller
from windlass.services.api.http.errors import Problem, escape
from windlass.services.api.tasks.handlers import Asked
from windlass.services.api.tasks.schemas import error_for, list_document
from windlass.shared.states import Lane
from windlass.shared.states import State as TaskState
from windlass.shared.store.reading import listing
from windlass.shared.store.reading.listing import Filter
from windlass.shared.store.rows import TaskRow

Limit = Annotated[int, QueryParameter(ge=1, le=500, description="How many at most.")]
Cursor = Annotated[UUID | None, QueryParameter(description="The `next_cursor` of the page before.")]
Searched = Annotated[
    str | None,
    QueryParameter(
        min_length=3,
        max_length=200,
        description="A part of the error message, or of the beginning of the prompt or content.",
    ),
]


async def asked_filter(  # noqa: PLR0917 - Litestar passes them by name, and runs plain functions in a thread
    status: Annotated[list[TaskState] | None, QueryParameter(description="One of these states.")] = None,
    actor: FromQuery[str | None] = None,
    provider: FromQuery[str | None] = None,
    lane: FromQuery[Lane | None] = None,
    user_id: FromQuery[str | None] = None,
    tag: Annotated[list[str] | None, QueryParameter(description="All of these tags.")] = None,
    project_id: FromQuery[str | None] = None,
    workflow_id: FromQuery[str | None] = None,
    workflow_run_id: FromQuery[str | None] = None,
    interaction_id: FromQuery[str | None] = None,
    parent_task_id: FromQuery[UUID | None] = None,
    error_type: FromQuery[str | None] = None,
    fingerprint: Annotated[str | None, QueryParameter(description="As `/queues/dlq?group_by=error` shows it.")] = None,
    created_after: FromQuery[datetime | None] = None,
    created_before: FromQuery[datetime | None] = None,
    updated_after: FromQuery[datetime | None] = None,
    q: Searched = None,
) -> Filter:
    """The filters of a list, as its query says."""
    return Filter(
        status=status, actor=actor, provider=provider, lane=lane, user_id=user_id, tag=tag, project_id=project_id,
        workflow_id=workflow_id, workflow_run_id=workflow_run_id, interaction_id=interaction_id,
        parent_task_id=parent_task_id, error_type=error_type, fingerprint=fingerprint,
        created_after=in_utc(created_after), created_before=in_utc(created_before),
        updated_after=in_utc(updated_after), q=q,
    )  # fmt: skip


FILTERED = {"wanted": Provide(asked_filter)}
Wanted = NamedDependency[Filter]
FILTERS = frozenset(each.name for each in fields(Filter))


@get("/tasks", dependencies=FILTERED)
async def list_tasks(  # noqa: PLR0917 - Litestar passes them by name
    request: Asked,
    state: State,
    wanted: Wanted,
    cursor: Cursor = None,
    limit: Limit = 50,
    full: Annotated[bool, QueryParameter(description="With payload, result and every attempt's error.")] = False,  # noqa: FBT002
) -> dict[str, Any]:
    """Tasks, newest first: pages follow each other without gap or repeat while new tasks arrive."""
    refuse_unknown(request, {"cursor", "limit", "full"})
    return await page(state, request.user, wanted, cursor=cursor, limit=limit, full=full)


async def page(
    state: State, caller: Caller, wanted: Filter, *, cursor: UUID | None, limit: int, full: bool
) -> dict[str, Any]:
    rows = await listing.newest(state.lists, wanted, owner=caller.own, before=cursor, limit=limit + 1, full=full)
    document: dict[str, Any] = {"items": await documents(state, caller, rows[:limit], full=full)}
    if len(rows) > limit:
        document["next_cursor"] = rows[limit - 1].task_id
    return document


async def documents(state: State, caller: Caller, rows: Sequence[TaskRow], *, full: bool) -> list[dict[str, Any]]:
    items = [list_document(row, caller, state.media_links, full=full) for row in rows]
    if full and items:
        histories = await listing.error_histories(state.lists, [row.task_id for row in rows])
        for item in items:
            item["error_history"] = [error_for(caller, error) for error in histories[item["task_id"]]]
    return items


def refuse_unknown(request: Asked, also: set[str]) -> None:
    """A filter with a typing error must not list everything."""
    if unknown := sorted(set(request.query_params) - FILTERS - also):
        errors = [{"pointer": f"/{escape(name)}", "detail": "no such parameter"} for name in unknown]
        known = ", ".join(sorted(FILTERS | also))
        raise Problem(422, "unknown-parameter", f"there is no {', '.join(unknown)} here; known: {known}", errors=errors)


def in_utc(moment: datetime | None) -> datetime | None:
    """A time without a zone is meant in UTC, as all times that we answer with."""
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


HANDLERS = [list_tasks]

"""Lists of tasks over REST: filters, pages, and as much of each task as was asked for."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from inspect import Parameter, Signature
from typing import Annotated, Any
from uuid import UUID

from litestar import get
from litestar.datastructures import State
from litestar.di import NamedDependency, Provide
from litestar.params import QueryParameter

from windlass.services.api.access.auth import Caller
from windlass.services.api.tasks.handlers import Asked
from windlass.services.api.tasks.schemas import error_for, list_document
from windlass.shared.filters import FILTERS, LONGEST_SEARCH, SHORTEST_SEARCH, Filter, description_of
from windlass.shared.store.reading import listing
from windlass.shared.store.reading.listing import ListedTask

Limit = Annotated[int, QueryParameter(ge=1, le=500, description="How many at most.")]
Cursor = Annotated[UUID | None, QueryParameter(description="The `next_cursor` of the page before.")]


async def asked_filter(**asked: Any) -> Filter:
    """The filters of a list, as its query says."""
    in_zone: dict[str, Any] = {name: in_utc(value) for name, value in asked.items()}
    return Filter(**in_zone)


def parameter_of(name: str, kind: object) -> Parameter:
    """A name that nobody has finds nothing; only a search that would be dear is refused."""
    said = QueryParameter(description=description_of(name))
    if name == "q":
        said = replace(said, min_length=SHORTEST_SEARCH, max_length=LONGEST_SEARCH)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, said])


# Litestar reads from the signature what a query may say.
PARAMETERS = [parameter_of(name, kind) for name, kind in FILTERS.items()]
asked_filter.__signature__ = Signature(PARAMETERS, return_annotation=Filter)  # type: ignore[attr-defined]
asked_filter.__annotations__ = {**{each.name: each.annotation for each in PARAMETERS}, "return": Filter}

FILTERED = {"wanted": Provide(asked_filter)}
Wanted = NamedDependency[Filter]


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
    return await page(state, request.user, wanted, cursor=cursor, limit=limit, full=full)


async def page(
    state: State, caller: Caller, wanted: Filter, *, cursor: UUID | None, limit: int, full: bool
) -> dict[str, Any]:
    rows = await listing.newest(state.lists, wanted, owner=caller.own, before=cursor, limit=limit + 1, full=full)
    document: dict[str, Any] = {"items": await documents(state, caller, rows[:limit], full=full)}
    if len(rows) > limit:
        document["next_cursor"] = rows[limit - 1].task_id
    return document


async def documents(state: State, caller: Caller, rows: Sequence[ListedTask], *, full: bool) -> list[dict[str, Any]]:
    items = [list_document(row, caller, state.media_links, full=full) for row in rows]
    if full and items:
        histories = await listing.error_histories(state.lists, [row.task_id for row in rows])
        for item in items:
            item["error_history"] = [error_for(caller, error) for error in histories[item["task_id"]]]
    return items


def in_utc(value: object) -> object:
    """A time without a zone is meant in UTC, as all times that we answer with."""
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


HANDLERS = [list_tasks]

"""Lists of tasks over REST: filters, pages, and as much of each task as was asked for."""

from dataclasses import replace
from datetime import UTC, datetime
from inspect import Parameter, Signature
from itertools import islice
from typing import Annotated, Any
from uuid import UUID

from litestar import Response, get
from litestar.datastructures import State
from litestar.di import NamedDependency, Provide
from litestar.params import QueryParameter

from windlass.services.api.access.auth import Caller
from windlass.services.api.http.pages import page
from windlass.services.api.tasks.handlers import Asked
from windlass.services.api.tasks.schemas import error_for, list_document
from windlass.shared.filters import FILTERS, LONGEST_SEARCH, SHORTEST_SEARCH, Filter, description_of
from windlass.shared.store.reading import listing

WHOLE_TASKS_AT_ONCE = 2
"""A payload and a result may have six megabytes, and many times that in memory."""

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
) -> Response[dict[str, Any]]:
    """Tasks, newest first: pages follow each other without gap or repeat while new tasks arrive."""
    return await page_of_tasks(state, request.user, wanted, cursor=cursor, limit=limit, full=full)


async def page_of_tasks(
    state: State, caller: Caller, wanted: Filter, *, cursor: UUID | None, limit: int, full: bool
) -> Response[dict[str, Any]]:
    """A full list finds its tasks without what is large, and reads that afterwards, a few tasks at a time."""

    async def read(before: Any, number: int) -> list[tuple[Any, Any]]:
        rows = await listing.newest(state.lists, wanted, owner=caller.own, before=before, limit=number)
        return [(row.task_id, list_document(row, caller, state.media_links, full=False)) for row in rows]

    if not full:
        return await page(read, cursor=cursor, limit=limit)
    found = iter([task_id for task_id, _ in await read(cursor, limit + 1)])

    async def read_whole(_before: Any, number: int) -> list[tuple[Any, Any]]:
        task_ids = list(islice(found, number))
        rows = await listing.whole(state.lists, task_ids)
        histories = await listing.error_histories(state.lists, task_ids)
        documents = [list_document(row, caller, state.media_links, full=True) for row in rows]
        for each in documents:
            each["error_history"] = [error_for(caller, error) for error in histories[each["task_id"]]]
        return [(each["task_id"], each) for each in documents]

    return await page(read_whole, cursor=cursor, limit=limit, at_once=WHOLE_TASKS_AT_ONCE)


def in_utc(value: object) -> object:
    """A time without a zone is meant in UTC, as all times that we answer with."""
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


HANDLERS = [list_tasks]

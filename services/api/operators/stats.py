"""Daily figures, as the janitor keeps them: by actor, agent, provider, user and project."""

import csv
import io
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any

from litestar import Response, get
from litestar.datastructures import State
from litestar.params import QueryParameter

from windlass.services.api.http.errors import Problem
from windlass.services.api.tasks.handlers import Asked, json_response
from windlass.shared.store.operating import statistics
from windlass.shared.store.operating.statistics import GROUPS
from windlass.shared.suggestions import did_you_mean

LONGEST_DAYS = 366


@get("/stats")
async def list_stats(  # noqa: PLR0917 - Litestar passes them by name
    request: Asked,
    state: State,
    first: Annotated[date | None, QueryParameter(name="from", description="The first day, in UTC.")] = None,
    last: Annotated[date | None, QueryParameter(name="to", description="The last day; today if left out.")] = None,
    days: Annotated[
        int, QueryParameter(ge=1, le=LONGEST_DAYS, description="Instead of `from`: so many days up to the last.")
    ] = 30,
    group_by: Annotated[
        str, QueryParameter(description=f"What the days are split by, with commas between: {', '.join(GROUPS)}.")
    ] = "actor",
) -> Response[Any]:
    """What became of each day's tasks, how long they took and what they cost: the caller's own, or everybody's for who
    may see all. With `Accept: text/csv` as a table."""
    wanted = [name.strip() for name in group_by.split(",") if name.strip()]
    for name in wanted:
        if name not in GROUPS:
            detail = f"group_by: nothing is counted by {name}; {did_you_mean(name, GROUPS)}"
            raise Problem(422, "invalid-request", detail, errors=[{"pointer": "/group_by", "detail": detail}])
    last = last or datetime.now(UTC).date()
    first = first or date.fromordinal(max(last.toordinal() - days + 1, 1))
    if not timedelta() <= last - first < timedelta(days=LONGEST_DAYS):
        detail = f"from: it must not be after `to`, nor {LONGEST_DAYS} days before it"
        raise Problem(422, "invalid-request", detail, errors=[{"pointer": "/from", "detail": detail}])
    rows = await statistics.between(state.lists, first, last, group_by=wanted, owner=request.user.own)
    items = [statistics.document_of(row, wanted) for row in rows]
    if "text/csv" in request.headers.get("accept", ""):
        return Response(as_csv(items, wanted), media_type="text/csv")
    return json_response({"items": items}, 200)


def as_csv(items: list[dict[str, Any]], group_by: list[str]) -> str:
    """Its first line names the columns, also where there is no other. What a spreadsheet would take for a formula is
    text."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(items[0] if items else ["day", *(name for name in GROUPS if name in group_by)])
    writer.writerows([plain(value) for value in each.values()] for each in items)
    return text.getvalue()


def plain(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value[:1] in {"=", "+", "-", "@"} else value


HANDLERS = [list_stats]

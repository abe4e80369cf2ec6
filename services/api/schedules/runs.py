"""The due times of schedules over REST: read, looked ahead at, started by hand and made up for."""

from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any
from uuid import UUID

from litestar import Response, get, post
from litestar.datastructures import State
from litestar.params import QueryParameter

from windlass.services.api.access.reasons import read_reason
from windlass.services.api.http.bodies import field_problem, read_json
from windlass.services.api.http.errors import Problem
from windlass.services.api.http.pages import page
from windlass.services.api.schedules.documents import run_document
from windlass.services.api.schedules.handlers import Named, checked
from windlass.services.api.schedules.looking_up import changeable_schedule, visible_schedule
from windlass.services.api.schedules.schemas import MOST_BACKFILLED, Backfill, Preview
from windlass.services.api.tasks.handlers import Asked
from windlass.shared.features.schedules import firing
from windlass.shared.schedules.planner import backfilled
from windlass.shared.schedules.times import Rule, in_words
from windlass.shared.schedules.words import Cause, Outcome
from windlass.shared.store.rows import ScheduleRunRow
from windlass.shared.store.schedules import reading
from windlass.shared.store.schedules.reading import Read, rule_of


@post("/schedules/preview", status_code=200)
async def preview_schedule(request: Asked) -> dict[str, Any]:
    """Times in words, and the next of them, without making anything."""
    wanted = checked(Preview, await read_json(request))
    now = datetime.now(UTC)
    rule = Rule(UUID(int=0), now.replace(microsecond=0), wanted.cron, wanted.every_seconds, wanted.timezone)
    return {"words": in_words(rule), "times": list(islice(rule.after(now), wanted.count))}


@get("/schedules/{schedule:str}/runs")
async def list_schedule_runs(  # noqa: PLR0917 - Litestar passes them by name
    request: Asked,
    state: State,
    schedule: Named,
    outcome: Annotated[list[Outcome] | None, QueryParameter(description="Only those; repeat it for several.")] = None,
    cursor: Annotated[datetime | None, QueryParameter(description="The `next_cursor` of the page before.")] = None,
    limit: Annotated[int, QueryParameter(ge=1, le=500, description="How many at most.")] = 50,
) -> Response[dict[str, Any]]:
    """What became of each time that it was due, the latest first."""
    of_schedule = await visible_schedule(state, request.user, schedule)
    if cursor is not None and cursor.tzinfo is None:
        cursor = cursor.replace(tzinfo=UTC)

    async def read(position: Any, number: int) -> list[tuple[Any, Any]]:
        rows = await reading.runs(state.pool, of_schedule.schedule_id, outcomes=outcome, before=position, limit=number)
        return [(row.due_at, run_document(row)) for row in rows]

    return await page(read, cursor=cursor, limit=limit)


@post("/schedules/{schedule:str}/trigger", status_code=202)
async def trigger_schedule(request: Asked, state: State, schedule: Named) -> dict[str, Any]:
    """Due now, beside its times, also while it is paused; what is in the way is in the way."""
    row = await changeable_schedule(request, state, schedule, "trigger", reason=await read_reason(request))
    (run,) = await fired(state, row, [row.read_at], Cause.TRIGGER)
    return run_document(run)


@post("/schedules/{schedule:str}/backfill", status_code=202)
async def backfill_schedule(request: Asked, state: State, schedule: Named) -> dict[str, Any]:
    """Starts the due times of a time that is past, all at once, but for those that were started before."""
    wanted = checked(Backfill, await read_json(request))
    row = await changeable_schedule(request, state, schedule, "backfill", reason=wanted.reason)
    if wanted.end > row.read_at:
        raise field_problem("/to", "invalid-schedule", "it is not past yet")
    times = backfilled(rule_of(row), wanted.begin, wanted.end, at_most=MOST_BACKFILLED)
    if len(times) > MOST_BACKFILLED:
        detail = f"there are more than {MOST_BACKFILLED} due times; take a shorter time"
        raise field_problem("/from", "invalid-schedule", detail)
    return {"items": [run_document(each) for each in await fired(state, row, times, Cause.BACKFILL)]}


async def fired(state: State, row: Read, times: list[datetime], cause: Cause) -> list[ScheduleRunRow]:
    if times and not await firing.fire_one(state.features, row, times, cause):
        raise Problem(409, "schedule-changed", "somebody has just changed it; look at it, and ask again")
    return await reading.some_runs(state.pool, row.schedule_id, times)


HANDLERS = [preview_schedule, list_schedule_runs, trigger_schedule, backfill_schedule]

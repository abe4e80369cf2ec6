"""Schedules over REST: made, listed, read, changed, paused, resumed and deleted."""

from typing import Annotated, Any
from uuid import UUID

from litestar import Response, delete, get, patch, post, put
from litestar.datastructures import State
from litestar.params import FromPath, QueryParameter
from pydantic import BaseModel, ValidationError

from windlass.services.api.access.auth import require_writer
from windlass.services.api.access.reasons import AskedReason, read_reason
from windlass.services.api.http.bodies import field_problem, read_json
from windlass.services.api.http.errors import Problem, invalid_fields
from windlass.services.api.http.pages import LARGE_ROWS_AT_ONCE, page
from windlass.services.api.schedules.documents import GIVEN, schedule_document
from windlass.services.api.schedules.looking_up import changeable_schedule, find, visible_schedule
from windlass.services.api.schedules.schemas import NewSchedule, ScheduleChange
from windlass.services.api.schedules.writing import prepared
from windlass.services.api.tasks.handlers import Asked
from windlass.shared.features.schedules import changing
from windlass.shared.schedules.words import ScheduleState
from windlass.shared.scrubbing import scrub
from windlass.shared.store.schedules import reading
from windlass.shared.store.schedules.reading import Read

Named = FromPath[str]


@post("/schedules", status_code=201)
async def create_schedule(request: Asked, state: State) -> Response[dict[str, Any]]:
    """Starts something at its times, from now on."""
    require_writer(request.user)
    return await made(request, state, checked(NewSchedule, await read_json(request)))


@put("/schedules/{schedule:str}")
async def put_schedule(request: Asked, state: State, schedule: Named) -> Response[dict[str, Any]]:
    """Makes the schedule of this name, or changes the one that there is: whoever says the same twice has it once."""
    require_writer(request.user)
    body = await read_json(request)
    if isinstance(body, dict):
        body = {"name": schedule, **body}
    row = await find(state, request.user, schedule)
    wanted = checked(NewSchedule, body)
    if row is None:
        if is_an_id(schedule):
            raise Problem(404, "schedule-not-found", f"there is no schedule {schedule}")
        if wanted.name != schedule:
            raise field_problem("/name", "invalid-schedule", "a new one is called as its path says")
        return await made(request, state, wanted)
    row = await changeable_schedule(request, state, str(row.schedule_id), "change", defines=True)
    return Response(schedule_document(await changed(request, state, row, wanted)), status_code=200)


@get("/schedules")
async def list_schedules(
    request: Asked,
    state: State,
    of_state: Annotated[list[ScheduleState] | None, QueryParameter(name="state")] = None,
    cursor: Annotated[UUID | None, QueryParameter(description="The `next_cursor` of the page before.")] = None,
    limit: Annotated[int, QueryParameter(ge=1, le=500, description="How many at most.")] = 50,
) -> Response[dict[str, Any]]:
    """Schedules, newest first."""

    async def read(position: Any, number: int) -> list[tuple[Any, Any]]:
        rows = await reading.newest(state.pool, owner=request.user.own, states=of_state, before=position, limit=number)
        return [(row.schedule_id, schedule_document(row)) for row in rows]

    return await page(read, cursor=cursor, limit=limit, at_once=LARGE_ROWS_AT_ONCE)


@get("/schedules/{schedule:str}")
async def get_schedule(request: Asked, state: State, schedule: Named) -> dict[str, Any]:
    """One schedule, with its next five times."""
    return schedule_document(await visible_schedule(state, request.user, schedule))


@patch("/schedules/{schedule:str}")
async def change_schedule(request: Asked, state: State, schedule: Named) -> dict[str, Any]:
    """Some of its fields. What was due before is decided about as it was."""
    require_writer(request.user)
    said = checked(ScheduleChange, await read_json(request)).model_dump(exclude_unset=True, exclude_none=False)
    row = await changeable_schedule(request, state, schedule, "change", defines=True)
    now = {"name": row.name, **{name: row[name] for name in GIVEN}}
    for one, other in (("cron", "every_seconds"), ("every_seconds", "cron")):
        if said.get(one) is not None:
            now[other] = None
    if "target" in said and said["target"] is not None:
        said["target"] = {kind: value for kind, value in said["target"].items() if value is not None}
    kept = {name: value for name, value in said.items() if value is not None or name == "pause_after_failures"}
    return schedule_document(await changed(request, state, row, checked(NewSchedule, {**now, **kept})))


@delete("/schedules/{schedule:str}", status_code=204)
async def delete_schedule(request: Asked, state: State, schedule: Named, reason: AskedReason = None) -> None:
    """It starts nothing any more, and its name is free; what it has started goes on."""
    row = await changeable_schedule(request, state, schedule, "delete", reason=reason, defines=True)
    await changing.delete(state.features, row.schedule_id)


@post("/schedules/{schedule:str}/pause", status_code=200)
async def pause_schedule(request: Asked, state: State, schedule: Named) -> dict[str, Any]:
    """Nothing is started until it is resumed. Again is fine."""
    reason = await read_reason(request)
    row = await changeable_schedule(request, state, schedule, "pause", reason=reason)
    note = None if reason is None else scrub(reason)
    return still_there(await changing.pause(state.features, row.schedule_id, note), schedule)


@post("/schedules/{schedule:str}/resume", status_code=200)
async def resume_schedule(request: Asked, state: State, schedule: Named) -> dict[str, Any]:
    """It goes on from now; what was due meanwhile was missed, and has its rows. Again is fine."""
    row = await changeable_schedule(request, state, schedule, "resume", reason=await read_reason(request))
    return still_there(await changing.resume(state.features, row.schedule_id), schedule)


async def made(request: Asked, state: State, wanted: NewSchedule) -> Response[dict[str, Any]]:
    owner = request.user.user_id
    refuse_a_name_like_an_id(wanted.name)
    new = await prepared(wanted, wanted.name, owner=owner, caller=request.user, state=state)
    try:
        schedule_id = await changing.create(state.features, new)
    except changing.NameTaken as error:
        raise name_taken(wanted.name) from error
    row = await reading.get(state.pool, schedule_id)
    return Response(
        still_there(row, wanted.name), status_code=201, headers={"Location": f"/api/v1/schedules/{schedule_id}"}
    )


async def changed(request: Asked, state: State, row: Read, wanted: NewSchedule) -> Read:
    refuse_a_name_like_an_id(wanted.name)
    new = await prepared(wanted, wanted.name, owner=row.user_id, caller=request.user, state=state)
    try:
        now = await changing.change(state.features, row.schedule_id, new)
    except changing.NameTaken as error:
        raise name_taken(wanted.name) from error
    if now is None:
        raise Problem(404, "schedule-not-found", f"there is no schedule {row.name}")
    return now


def still_there(row: Read | None, said: str) -> dict[str, Any]:
    if row is None:
        raise Problem(404, "schedule-not-found", f"there is no schedule {said[:100]}")
    return schedule_document(row)


def name_taken(name: str) -> Problem:
    return Problem(409, "name-taken", f"there is a schedule {name} already; change it with PUT, or take another name")


def refuse_a_name_like_an_id(name: str) -> None:
    if is_an_id(name) or name == "preview":
        raise field_problem("/name", "invalid-schedule", "a name is no UUID, and not `preview`")


def is_an_id(said: str) -> bool:
    try:
        UUID(said)
    except ValueError:
        return False
    return True


def checked(model: type[BaseModel], body: Any) -> Any:
    try:
        return model.model_validate(body)
    except ValidationError as error:
        raise invalid_fields(error, "invalid-schedule", model) from error


HANDLERS = [
    create_schedule, put_schedule, list_schedules, get_schedule, change_schedule, delete_schedule, pause_schedule,
    resume_schedule,
]  # fmt: skip

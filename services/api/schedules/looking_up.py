"""A schedule that the caller may see, by its id or its name."""

from contextlib import suppress
from uuid import UUID

from litestar.datastructures import State

from windlass.services.api.access.audit import audit
from windlass.services.api.access.auth import Caller, require_writer
from windlass.services.api.http.errors import Problem
from windlass.services.api.tasks.handlers import Asked
from windlass.shared.features.schedules import firing
from windlass.shared.store.schedules import reading
from windlass.shared.store.schedules.reading import Read


async def find(state: State, caller: Caller, said: str) -> Read | None:
    """The caller's own go before those of others who have the same name; a foreign one is as if it did not exist."""
    if "\0" in said:
        return None
    with suppress(ValueError):
        row = await reading.get(state.pool, UUID(said))
        return row if row is not None and caller.may_see(row.user_id) else None
    own = await reading.named(state.pool, said, owner=caller.user_id)
    if own or not caller.sees_everything:
        return own[0] if own else None
    found = await reading.named(state.pool, said, owner=None)
    if len(found) > 1:
        raise Problem(409, "name-ambiguous", f"several users have a schedule {said}; name it by its id")
    return found[0] if found else None


async def visible_schedule(state: State, caller: Caller, said: str) -> Read:
    """After everything that has happened to it until now."""
    row = await find(state, caller, said)
    if row is not None and await firing.is_behind(state.pool, row):
        row = await firing.caught_up(state.features, row)
    if row is None:
        raise Problem(404, "schedule-not-found", f"there is no schedule {said[:100]}")
    return row


async def changeable_schedule(
    request: Asked, state: State, said: str, action: str, *, reason: str | None = None, defines: bool = False
) -> Read:
    """Returns a schedule that the caller may change. An operator's change of another user's schedule, or with a reason,
    goes to the audit log first. A schedule of the configuration is changed there."""
    require_writer(request.user)
    row = await visible_schedule(state, request.user, said)
    if defines and row.declared_by is not None:
        raise Problem(409, "schedule-declared", f"it stands in {row.declared_by}: change it there")
    if row.user_id != request.user.user_id or reason is not None:
        await audit(request, f"schedule.{action}", row.schedule_id, {"owner": row.user_id}, reason=reason)
    return row

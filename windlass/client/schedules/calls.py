"""Every call about schedules: its path, what it takes and what it answers."""

from collections.abc import Sequence
from typing import Final

from windlass.client.call import Call
from windlass.client.calls import API, named, without_none
from windlass.client.options import Moment
from windlass.client.schedules.documents import Preview, RunOutcome, Schedule, ScheduleRun, ScheduleRuns, ScheduleState
from windlass.client.schedules.options import ScheduleChange, ScheduleFields, ScheduleName, Target, Times
from windlass.client.task import Listing

SCHEDULES: Final = f"{API}/schedules"
NEXT: Final = 5


def create(name: str, target: Target, fields: ScheduleFields) -> Call[Schedule]:
    """Not repeated: a second one would find that the name is taken. `put` may be."""
    body = {"name": name, "target": target, **without_none(fields)}
    return Call("POST", SCHEDULES, Schedule, body=body, repeatable=False)


def put(name: ScheduleName, target: Target, fields: ScheduleFields) -> Call[Schedule]:
    return Call("PUT", _schedule(name), Schedule, body={"target": target, **without_none(fields)})


def list_schedules(states: Sequence[ScheduleState] = (), page_size: int | None = None) -> Call[Listing[Schedule]]:
    params = {"state": list(states) or None, "limit": page_size}
    return Call("GET", SCHEDULES, Listing[Schedule], params=params)


def get(name: ScheduleName) -> Call[Schedule]:
    return Call("GET", _schedule(name), Schedule)


def change(name: ScheduleName, changes: ScheduleChange) -> Call[Schedule]:
    """Not repeated: after a change of the name there would be nobody of the old one."""
    return Call("PATCH", _schedule(name), Schedule, body=dict(changes), repeatable="name" not in changes)


def delete(name: ScheduleName, reason: str | None = None) -> Call[bytes]:
    """Not repeated: a second one would not find it."""
    return Call("DELETE", _schedule(name), bytes, params={"reason": reason}, is_raw=True, repeatable=False)


def pause(name: ScheduleName, reason: str | None = None) -> Call[Schedule]:
    return Call("POST", f"{_schedule(name)}/pause", Schedule, body=without_none({"reason": reason}))


def resume(name: ScheduleName, reason: str | None = None) -> Call[Schedule]:
    return Call("POST", f"{_schedule(name)}/resume", Schedule, body=without_none({"reason": reason}))


def trigger(name: ScheduleName, reason: str | None = None) -> Call[ScheduleRun]:
    """Not repeated: it would start another."""
    body = without_none({"reason": reason})
    return Call("POST", f"{_schedule(name)}/trigger", ScheduleRun, body=body, repeatable=False)


def backfill(name: ScheduleName, begin: Moment, end: Moment, reason: str | None = None) -> Call[ScheduleRuns]:
    """What has been started is not started again."""
    body = {"from": begin, "to": end, **without_none({"reason": reason})}
    return Call("POST", f"{_schedule(name)}/backfill", ScheduleRuns, body=body)


def runs(
    name: ScheduleName, outcomes: Sequence[RunOutcome] = (), page_size: int | None = None
) -> Call[Listing[ScheduleRun]]:
    params = {"outcome": list(outcomes) or None, "limit": page_size}
    return Call("GET", f"{_schedule(name)}/runs", Listing[ScheduleRun], params=params)


def preview(times: Times, count: int = NEXT) -> Call[Preview]:
    return Call("POST", f"{SCHEDULES}/preview", Preview, body={**without_none(times), "count": count})


def _schedule(name: ScheduleName) -> str:
    return f"{SCHEDULES}/{named(str(name))}"

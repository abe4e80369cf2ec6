"""What a schedule starts, from what was checked: all of it but what each start makes anew."""

from typing import Any

import msgspec

from windlass.shared.concerns import Concern
from windlass.shared.db import as_json
from windlass.shared.schedules.definition import Definition
from windlass.shared.scrubbing import withhold
from windlass.shared.store.tasks import Submission
from windlass.shared.submission.workflows import Wanted

NOT_OF_A_SCHEDULE = {
    "depends_on": "each start would wait for the same task; make it a workflow",
    "parent_task_id": "a schedule's tasks have no parent",
    "workflow_id": "each start would join the same workflow; make it a workflow of its own",
    "dedupe_key": "each due time starts one, and no other",
    "dedupe_ttl_seconds": "each due time starts one, and no other",
    "run_at": "its times are the schedule's",
    "user_id": "what a schedule starts is its owner's",
}
PER_START = ("task_id", "traceparent", "reach", "dedupe_ttl_seconds", "request_id")


class NewSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as its author wants it, checked."""

    user_id: str
    name: str
    cron: str | None
    every_seconds: int | None
    timezone: str
    target: dict[str, Any]
    kind: str
    prepared: dict[str, Any]
    overlap: str
    catch_up: str
    catch_up_window_seconds: float
    jitter_seconds: float
    pause_after_failures: int | None
    declared_by: str | None = None


def start_of_task(submission: Submission, owner: str) -> dict[str, Any]:
    stored = msgspec.json.decode(as_json(submission))
    start = {name: value for name, value in stored.items() if name not in PER_START}
    return {**start, "user_id": owner, "concerns": submission.concerns | Concern.SCHEDULE.value}


def start_of_workflow(wanted: Wanted, owner: str) -> dict[str, Any]:
    stored = msgspec.json.decode(as_json(wanted))
    stored["workflow"]["user_id"] = owner
    for each in (*stored["submissions"], *(node["template"] for node in stored["nodes"])):
        each["user_id"] = owner
        each.pop("traceparent", None)
    return {name: stored[name] for name in ("workflow", "nodes", "submissions")}


def new_schedule(
    wanted: Definition, name: str, start: dict[str, Any], *, owner: str, declared_by: str | None = None
) -> NewSchedule:
    return NewSchedule(
        user_id=owner,
        name=name,
        target=withhold(wanted.target.model_dump(exclude_none=True)),
        kind=wanted.target.kind,
        prepared=start,
        declared_by=declared_by,
        **wanted.model_dump(exclude={"target", "name"}),
    )

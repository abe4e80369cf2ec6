"""What the operations on schedules take and answer, beside what their handlers say themselves."""

from windlass.services.api.access.reasons import Reasoned
from windlass.services.api.reference.documents import schedules as documents
from windlass.services.api.reference.operation import Answer, Operation
from windlass.services.api.schedules.schemas import Backfill, NewSchedule, Preview, ScheduleChange

ALL, ONE = "/api/v1/schedules", "/api/v1/schedules/{schedule}"

A_SCHEDULE = Answer("The schedule.", (documents.ScheduleDocument,))
MADE = Answer("The new schedule.", (documents.ScheduleDocument,), headers={"Location": "The schedule's own path."})
NIGHTLY = {
    "name": "nightly",
    "cron": "30 2 * * *",
    "timezone": "Europe/Berlin",
    "target": {"task": {"actor": "summarize", "payload": {"content": "What happened today?"}}},
}
WHY = {"reason": "the provider is on holiday"}


def _told(summary: str, answers: dict[int, Answer]) -> Operation:
    return Operation(
        "Schedules", summary, answers, problems=(403, 404, 409), body=Reasoned, body_required=False, example=WHY
    )


SCHEDULE_OPERATIONS: dict[tuple[str, str], Operation] = {
    ("POST", ALL): Operation(
        "Schedules", "Make a schedule", {201: MADE}, problems=(403, 409), body=NewSchedule, example=NIGHTLY
    ),
    ("GET", ALL): Operation(
        "Schedules", "List schedules", {200: Answer("A page.", (documents.SchedulePage,))}, problems=(422,)
    ),
    ("GET", ONE): Operation("Schedules", "Read a schedule", {200: A_SCHEDULE}, problems=(404, 409)),
    ("PUT", ONE): Operation(
        "Schedules",
        "Make or change a schedule",
        {200: A_SCHEDULE, 201: MADE},
        problems=(403, 404, 409),
        body=NewSchedule,
        example=NIGHTLY,
    ),
    ("PATCH", ONE): Operation(
        "Schedules",
        "Change some of a schedule",
        {200: A_SCHEDULE},
        problems=(403, 404, 409),
        body=ScheduleChange,
        example={"overlap": "queue-one"},
    ),
    ("DELETE", ONE): Operation(
        "Schedules", "Delete a schedule", {204: Answer("It is gone.")}, problems=(403, 404, 409)
    ),
    ("POST", f"{ONE}/pause"): _told("Pause a schedule", {200: A_SCHEDULE}),
    ("POST", f"{ONE}/resume"): _told("Resume a schedule", {200: A_SCHEDULE}),
    ("POST", f"{ONE}/trigger"): _told(
        "Start it now", {202: Answer("What became of it.", (documents.ScheduleRunDocument,))}
    ),
    ("POST", f"{ONE}/backfill"): Operation(
        "Schedules",
        "Make up for a time that is past",
        {202: Answer("What became of each due time.", (documents.ScheduleRunList,))},
        problems=(403, 404, 409),
        body=Backfill,
        example={"from": "2026-06-01T00:00:00Z", "to": "2026-06-02T00:00:00Z"},
    ),
    ("GET", f"{ONE}/runs"): Operation(
        "Schedules",
        "What became of its due times",
        {200: Answer("A page.", (documents.ScheduleRunPage,))},
        problems=(404, 409, 422),
    ),
    ("POST", f"{ALL}/preview"): Operation(
        "Schedules",
        "Look ahead at times",
        {200: Answer("The times.", (documents.PreviewDocument,))},
        problems=(),
        body=Preview,
        example={"cron": "30 2 * * *", "timezone": "Europe/Berlin"},
    ),
}

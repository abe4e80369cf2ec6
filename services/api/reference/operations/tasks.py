"""What the operations on tasks take and answer, beside what their handlers say themselves."""

from typing import Annotated

from pydantic import BaseModel, Field

from windlass.services.api.access.reasons import Reasoned
from windlass.services.api.reference.documents import operators, tasks
from windlass.services.api.reference.operation import Answer, Operation
from windlass.services.api.tasks.bulk import BulkChange
from windlass.services.api.tasks.schemas import NewTask, Sweep

A_TASK = Answer("The task.", (tasks.TaskDocument,))
EVENT_STREAM = Answer("Server-sent events.", media_type="text/event-stream")
REPLAYED = {"Idempotent-Replayed": "`true` when the key was used before."}

CANCELLED = {
    200: Answer("It is cancelled.", (tasks.TaskDocument,)),
    202: Answer("Its worker is stopping it.", (tasks.TaskDocument,)),
}


class NewBatch(BaseModel):
    """Up to 1,000 tasks, stored all or none."""

    tasks: Annotated[list[NewTask], Field(min_length=1, max_length=1000)]


SUBMIT = Operation(
    "Submit",
    "Submit a task",
    {
        200: Answer("It ended within `wait`, or was there already.", (tasks.TaskDocument,), headers=REPLAYED),
        201: Answer("Stored for good.", (tasks.TaskDocument,), headers={"Location": "Where it can be read."}),
        202: Answer("Stored, and not ended within `wait`.", (tasks.TaskDocument,)),
    },
    problems=(403, 409),
    body=NewTask,
    example={"actor": "probe", "payload": {"seconds": 2, "steps": 4, "result": "hello"}, "tags": ["demo"]},
)


TASK_OPERATIONS: dict[tuple[str, str], Operation] = {
    ("POST", "/api/v1/tasks"): SUBMIT,
    ("GET", "/api/v1/tasks"): Operation("Read", "List tasks", {200: Answer("A page.", (tasks.TaskPage,))}),
    ("GET", "/api/v1/tasks/{task_id}"): Operation(
        "Read",
        "Read a task",
        {200: A_TASK, 202: Answer("It has not ended within `wait`.", (tasks.TaskDocument,))},
        problems=(404,),
    ),
    ("GET", "/api/v1/tasks/{task_id}/events"): Operation(
        "Read", "Read a task's history", {200: Answer("A page.", (tasks.EventPage,))}, problems=(404,)
    ),
    ("GET", "/api/v1/tasks/{task_id}/stream"): Operation(
        "Read",
        "Watch a task",
        {200: EVENT_STREAM, 204: Answer("The story is over, and the client has read all of it.")},
        problems=(400, 404),
    ),
    ("POST", "/api/v1/tasks/batch"): Operation(
        "Submit",
        "Submit many tasks",
        {
            200: Answer("All of them were there already.", (tasks.BatchDocument,), headers=REPLAYED),
            201: Answer("Stored for good, all of them.", (tasks.BatchDocument,)),
        },
        problems=(403, 409),
        body=NewBatch,
        example={"tasks": [{"actor": "probe"}, {"actor": "probe", "payload": {"seconds": 1}}]},
    ),
    ("POST", "/api/v1/tasks/{task_id}/cancel"): Operation(
        "Change",
        "Cancel a task",
        CANCELLED,
        problems=(403, 404, 409),
        body=Reasoned,
        body_required=False,
        example={"reason": "not wanted any more"},
    ),
    ("DELETE", "/api/v1/tasks/{task_id}"): Operation(
        "Change", "Cancel a task, too", CANCELLED, problems=(403, 404, 409)
    ),
    ("POST", "/api/v1/tasks/{task_id}/retry"): Operation(
        "Change",
        "Revive a task",
        {200: A_TASK},
        problems=(403, 404, 409),
        body=Reasoned,
        body_required=False,
        example={"reason": "the provider is back"},
    ),
    ("GET", "/api/v1/tasks/{task_id}/why"): Operation(
        "Read", "Ask why a task is not running", {200: Answer("The reason.", (tasks.WhyDocument,))}, problems=(404,)
    ),
    ("POST", "/api/v1/tasks/{task_id}/stream-token"): Operation(
        "Read",
        "Get a token for a task's stream",
        {201: Answer("The token.", (tasks.StreamTokenDocument,))},
        problems=(404,),
    ),
    ("GET", "/api/v1/stream"): Operation("Read", "Watch many tasks", {200: EVENT_STREAM}, problems=(400,)),
    ("POST", "/api/v1/tasks/bulk"): Operation(
        "Change",
        "Retry or cancel many tasks",
        {
            200: Answer("With `dry_run`: how many it would be.", (operators.MatchedDocument,)),
            202: Answer("It has begun.", (operators.StartedBulk,)),
        },
        problems=(403,),
        body=BulkChange,
        example={"action": "cancel", "filter": {"tag": ["nightly"], "status": ["queued"]}, "dry_run": True},
    ),
    ("GET", "/api/v1/bulk/{bulk_id}"): Operation(
        "Change", "See how far a bulk job is", {200: Answer("The job.", (operators.BulkDocument,))}, problems=(404,)
    ),
    ("POST", "/api/v1/tasks/requeue-orphaned"): Operation(
        "Operate",
        "Run the stale sweep now",
        {200: Answer("What it took back.", (tasks.RecoveredDocument,))},
        problems=(403,),
        body=Sweep,
        body_required=False,
        example={"max_age_seconds": 0},
    ),
}

"""What the operations on projects take and answer, beside what their handlers say themselves."""

from windlass.services.api.access.reasons import Reasoned
from windlass.services.api.projects.schemas import Batch, ItemChange, NewItems, NewProject, ProjectChange, Run
from windlass.services.api.reference.documents import projects as documents
from windlass.services.api.reference.operation import Answer, Operation

PROJECT, ITEM = "/api/v1/projects/{project_id}", "/api/v1/projects/{project_id}/items/{item_id}"

A_PROJECT = Answer("The project.", (documents.ProjectDocument,))
AN_ITEM = Answer("The item.", (documents.ItemDocument,))
LOCATION = {"Location": "The project's own path."}
EVENT_STREAM = Answer("Server-sent events: `status`, `run`, `item`.", media_type="text/event-stream")
WHY = {"reason": "it goes in circles"}


def _told(summary: str, answers: dict[int, Answer]) -> Operation:
    return Operation(
        "Projects", summary, answers, problems=(403, 404, 409), body=Reasoned, body_required=False, example=WHY
    )


PROJECT_OPERATIONS: dict[tuple[str, str], Operation] = {
    ("POST", "/api/v1/projects"): Operation(
        "Projects",
        "Make a project",
        {
            200: Answer("It was made before, under the same Idempotency-Key.", (documents.ProjectDocument,)),
            201: Answer("The project.", (documents.ProjectDocument,), headers=LOCATION),
        },
        problems=(403, 409),
        body=NewProject,
        example={"name": "new website", "defaults": {"actor": "agent", "payload": {"subagent_type": "coder"}}},
    ),
    ("GET", "/api/v1/projects"): Operation(
        "Projects", "List projects", {200: Answer("A page.", (documents.ProjectPage,))}, problems=(422,)
    ),
    ("GET", PROJECT): Operation("Projects", "Read a project", {200: A_PROJECT}, problems=(404,)),
    ("PATCH", PROJECT): Operation(
        "Projects",
        "Change a project",
        {200: A_PROJECT},
        problems=(403, 404, 409),
        body=ProjectChange,
        example={"on_failure": "continue"},
    ),
    ("DELETE", PROJECT): Operation("Projects", "Archive a project", {200: A_PROJECT}, problems=(403, 404, 409)),
    ("POST", f"{PROJECT}/items"): Operation(
        "Projects",
        "Add items",
        {201: Answer("The new items.", (documents.ItemList,))},
        problems=(403, 404, 409),
        body=NewItems,
        example={"items": [{"title": "the header", "payload": {"prompt": "Write the header."}}]},
    ),
    ("GET", f"{PROJECT}/items"): Operation(
        "Projects", "List the backlog", {200: Answer("A page.", (documents.ItemPage,))}, problems=(404, 422)
    ),
    ("GET", ITEM): Operation("Projects", "Read an item", {200: AN_ITEM}, problems=(404,)),
    ("PATCH", ITEM): Operation(
        "Projects",
        "Move or change an item",
        {200: AN_ITEM},
        problems=(403, 404, 409),
        body=ItemChange,
        example={"title": "the header, in blue"},
    ),
    ("DELETE", ITEM): Operation("Projects", "Delete an item", {204: Answer("It is gone.")}, problems=(403, 404, 409)),
    ("POST", f"{ITEM}/skip"): _told("Skip an item", {200: AN_ITEM}),
    ("POST", f"{ITEM}/requeue"): _told("Requeue an item", {200: AN_ITEM}),
    ("POST", f"{PROJECT}/run"): Operation(
        "Projects",
        "Run a project",
        {202: Answer("It runs.", (documents.ProjectQueueDocument,))},
        problems=(403, 404, 409),
        body=Run,
        body_required=False,
        example={"mode": "loop"},
    ),
    ("POST", f"{PROJECT}/queue/stop"): _told(
        "Stop a project's queue", {200: Answer("No further run starts.", (documents.StoppedDocument,))}
    ),
    ("POST", f"{PROJECT}/queue/force-stop"): _told(
        "Stop a project's queue by force",
        {
            200: Answer("Nothing of the run lives any more.", (documents.ForceStoppedDocument,)),
            202: Answer("Not proven yet: it is stopping.", (documents.ForceStoppedDocument,)),
        },
    ),
    ("GET", f"{PROJECT}/queue/status"): Operation(
        "Projects", "See what the queue does", {200: Answer("Now.", (documents.ProjectQueueDocument,))}, problems=(404,)
    ),
    ("GET", f"{PROJECT}/queue/stream"): Operation(
        "Projects", "Watch a project's queue", {200: EVENT_STREAM}, problems=(400, 404)
    ),
    ("GET", f"{PROJECT}/events"): Operation(
        "Projects", "Read a project's history", {200: Answer("A page.", (documents.ProjectEventPage,))}, problems=(404,)
    ),
    ("GET", f"{PROJECT}/runs"): Operation(
        "Projects", "List a project's runs", {200: Answer("A page.", (documents.RunPage,))}, problems=(404,)
    ),
    ("POST", "/api/v1/projects/batch"): Operation(
        "Projects",
        "Run or stop many projects",
        {200: Answer("What has become of each.", (documents.ProjectBatchDocument,))},
        problems=(403,),
        body=Batch,
        example={"action": "stop", "project_ids": ["0192f0c1-2f5e-7a3b-8c1d-0123456789ab"]},
    ),
}

"""What each problem's code means and what to do about it: the pages that `type` names."""

from typing import NamedTuple


class Meaning(NamedTuple):
    """One code: the statuses that it comes with, what happened, and what helps."""

    statuses: tuple[int, ...]
    means: str
    remedy: str


PROBLEMS: dict[str, Meaning] = {
    "bad-request": Meaning((400,), "The request cannot be read.", "Compare it with the call's own description."),
    "actor-in-use": Meaning(
        (409,),
        "The actor cannot be forgotten: it has unfinished tasks or live workers, or the configuration names it.",
        "`detail` says which. Remove that first, then send the request again.",
    ),
    "bulk-not-found": Meaning(
        (404,), "There is no bulk job by this id that your key may see.", "Take the `bulk_id` that the start answered."
    ),
    "agent-event-not-found": Meaning(
        (404,), "There is no agent event by this id that your key may see.", "`GET /api/v1/agent-events` lists yours."
    ),
    "embedding-job-not-found": Meaning(
        (404,),
        "There is no embedding job by this id.",
        "`GET /api/v1/embedding-jobs` lists them; one that was refused has become two others.",
    ),
    "embedding-model-not-found": Meaning(
        (404,), "There is no embedding model by this id.", "`GET /api/v1/embedding-models` lists them."
    ),
    "model-active": Meaning((409,), "Memory is searched by this model.", "Activate another one, then delete this."),
    "model-exists": Meaning((409,), "The provider's model is there already.", "Activate that one, or delete it first."),
    "not-failed": Meaning((409,), "Only an embedding job that has failed is retried.", "Wait for what becomes of it."),
    "already-decided": Meaning((409,), "Somebody has decided about this task.", "Its `approval` says who, and how."),
    "body-incomplete": Meaning(
        (408,), "The body did not arrive in time.", "Send it in one go, with the right Content-Length."
    ),
    "body-too-large": Meaning((413,), "The body is larger than it may be.", "Send less at once: several batches, say."),
    "cross-site-request": Meaning(
        (403,),
        "A session's cookie came with a change that does not look as if our own page had asked for it.",
        "From a page: same origin, and JSON with its Content-Type, also without a body. From a program: send a key.",
    ),
    "database-unavailable": Meaning(
        (503,),
        "Postgres cannot be reached, takes nothing at the moment, or was not read yet by an api that has just started. "
        "What was accepted before is safe.",
        "Repeat the request after `Retry-After`; with an Idempotency-Key it is stored once however often.",
    ),
    "duplicate-name": Meaning(
        (400,), "An object in the body has the same name twice.", "Say each name once: readers differ in which counts."
    ),
    "empty-body": Meaning((400,), "The call takes a JSON object, and none came.", "Send one; `{}` is one, too."),
    "empty-filter": Meaning(
        (422,), "An empty filter would mean every task.", 'Name at least one filter, or say `"all": true`.'
    ),
    "forbidden": Meaning(
        (403,), "The key is valid, but its role does not allow this.", "Use a key with the role that the detail names."
    ),
    "idempotency-key-in-flight": Meaning(
        (409,), "A request under the same Idempotency-Key is still under way.", "Repeat it in a second."
    ),
    "idempotency-key-reused": Meaning(
        (422,), "This Idempotency-Key came with another body before.", "Take a new key for a new request."
    ),
    "backlog-empty": Meaning(
        (409,), "No item of the project waits.", "Add one with `POST …/items`, or requeue one that was run."
    ),
    "invalid-item": Meaning((422,), "A field of the item is invalid.", "`errors` names each field."),
    "invalid-project": Meaning((422,), "A field of the project is invalid.", "`errors` names each field."),
    "invalid-project-batch": Meaning(
        (422,), "A batch names an action and 1 to 100 projects.", "`errors` names each field."
    ),
    "invalid-run": Meaning((422,), "A field of the request to run is invalid.", "`errors` names each field."),
    "item-done": Meaning((409,), "The item is done already.", "Requeue it, if it is to be run again."),
    "item-not-found": Meaning(
        (404,), "There is no item by this id in the project.", "Take an `item_id` that `GET …/items` lists."
    ),
    "item-not-waiting": Meaning((409,), "Only an item that waits can be run.", "Requeue it first."),
    "item-running": Meaning(
        (409,), "A worker has the item's task: nobody changes it any more.", "Wait for the end of its run, or stop it."
    ),
    "parent-cancelled": Meaning(
        (409,), "The parent is cancelled, or about to be: it gets no more children.", "Submit it without that parent."
    ),
    "delivery-not-found": Meaning(
        (404,), "There is no delivery by this id that your key may see.", "Look in the webhook's `deliveries`."
    ),
    "delivery-under-way": Meaning((409,), "A worker is just trying it.", "Wait for the end of that try."),
    "invalid-webhook": Meaning((422,), "A field of the webhook is invalid.", "`errors` names each field."),
    "url-taken": Meaning((409,), "You have a webhook for this url.", "Change that one, or delete it."),
    "webhook-deleted": Meaning(
        (409,), "The delivery's webhook was deleted.", "Make it anew; what happens from then on is told."
    ),
    "webhook-disabled": Meaning(
        (409,), "The delivery's webhook is disabled or gone: nothing is sent to it.", "Enable it first."
    ),
    "webhook-not-found": Meaning(
        (404,), "There is no webhook by this id that your key may see.", "Look in `GET /webhooks`."
    ),
    "invalid-schedule": Meaning((422,), "A field of the schedule is invalid.", "`errors` names each field."),
    "name-ambiguous": Meaning((409,), "Several users have a schedule of this name.", "Name it by its id."),
    "name-taken": Meaning(
        (409,), "There is a schedule of this name already.", "Change it with `PUT`, or take another name."
    ),
    "schedule-changed": Meaning((409,), "Somebody has just changed the schedule.", "Look at it, and ask again."),
    "schedule-declared": Meaning(
        (409,), "The schedule stands in the configuration, or in an actor's code.", "Change it there."
    ),
    "schedule-not-found": Meaning(
        (404,), "There is no schedule by this id or name that your key may see.", "List them with `GET /schedules`."
    ),
    "unknown-project": Meaning((422,), "The schedule's owner has no such project.", "Name one of its own."),
    "project-archived": Meaning((409,), "The project is archived: it is only read.", "Make a new one."),
    "project-not-found": Meaning(
        (404,),
        "There is no project by this id that your key may see.",
        "Take a `project_id` that `GET /projects` lists.",
    ),
    "project-running": Meaning((409,), "The project's queue is not idle.", "Stop it first."),
    "queue-already-running": Meaning(
        (409,),
        "The project has an open run, and never two; `run` is the one that is open.",
        "Wait for its end, or stop the queue. Instead of a revival, requeue the item.",
    ),
    "unknown-item": Meaning((422,), "The other item is not in this project.", "Name one that `GET …/items` lists."),
    "internal-error": Meaning(
        (500,), "Something went wrong on our side.", "The log has the whole story under the `request_id`."
    ),
    "invalid-batch": Meaning((422,), "A batch is `{tasks: […]}` with 1 to 1,000 tasks.", "Split what is larger."),
    "invalid-bulk": Meaning((422,), "A field of the bulk change is invalid.", "`errors` names each field."),
    "invalid-callback": Meaning((422,), "A callback is a JSON object.", "Send what the provider's manual shows."),
    "invalid-event-id": Meaning(
        (400,),
        "The place in the stream to go on from is none of this stream's.",
        "Send the `id` of the last event that you have seen, or none to begin anew.",
    ),
    "invalid-idempotency-key": Meaning(
        (422,), "An Idempotency-Key has 1 to 255 visible ASCII characters and holds no secret.", "Take a random UUID."
    ),
    "invalid-key": Meaning((422,), "A field of the new key is invalid.", "`errors` names each field."),
    "invalid-payload": Meaning(
        (422,), "The payload does not fit its actor's schema.", "`errors` names each field and what would fit."
    ),
    "invalid-provider": Meaning(
        (422,), "A field of the change to a provider is invalid.", "`errors` names each field."
    ),
    "invalid-reference": Meaning(
        (422,),
        "A payload refers to something that the task does not depend on, or in a way that is not known.",
        "`errors` names the place; `$literal` is for what only looks like a reference.",
    ),
    "invalid-request": Meaning(
        (422,), "A parameter or a field is invalid.", "`errors` names each one and its allowed values."
    ),
    "invalid-signature": Meaning(
        (403,), "This media url was not made here, or has been changed.", "Read the task again for a fresh one."
    ),
    "invalid-task": Meaning(
        (422,), "A field of the task is invalid.", "`errors` names each field and its allowed values."
    ),
    "invalid-workflow": Meaning(
        (422,),
        "The workflow is invalid: a field, a duplicate or unknown key, or a cycle.",
        "`errors` names each place.",
    ),
    "key-in-use": Meaning((409,), "A key cannot revoke itself.", "Revoke it with another admin's key."),
    "key-not-found": Meaning((404,), "There is no key by this id.", "`GET /api/v1/keys` lists them."),
    "malformed-json": Meaning((400,), "The body is not JSON in UTF-8.", "The detail says where it breaks."),
    "head-too-large": Meaning(
        (431,),
        "The headers and the path have more than 64 KB, or one header more than 8 KB.",
        "Send fewer cookies or a shorter query.",
    ),
    "malformed-request": Meaning(
        (400,), "The request is not valid HTTP, or the connection ended within it.", "Send it again, whole."
    ),
    "media-missing": Meaning(
        (500,), "The file's row is there and the file is not.", "An operator finds which one in the log."
    ),
    "media-not-found": Meaning(
        (404,), "There is no media by this id that your key may see.", "Take a `content_id` from a task's result."
    ),
    "method-not-allowed": Meaning((405,), "The path is right and the method is not.", "`Allow` names what it takes."),
    "too-many-objects": Meaning(
        (422,), "The JSON has more lists and objects than a body may have.", "Send less at once: several batches, say."
    ),
    "nested-too-deep": Meaning((422,), "The JSON is nested deeper than it may be.", "Flatten it."),
    "not-cancellable": Meaning((409,), "The task, or the workflow, has ended.", "Nothing is left to be cancelled."),
    "not-escalated": Meaning((409,), "Only an escalated workflow is resumed.", "Its `status` says what it is."),
    "not-waiting-for-approval": Meaning(
        (409,), "The task does not wait for a person's word.", "`GET /api/v1/approvals` lists those that do."
    ),
    "not-found": Meaning((404,), "There is nothing at this path.", "`/schema` shows every path."),
    "concurrency-key-too-long": Meaning(
        (422,), "What the actor's tasks are told apart by is too long.", "`errors` names the field of the payload."
    ),
    "duplicate": Meaning(
        (409,),
        "Another task lives under the same `dedupe_key`.",
        "The detail names it: wait for that one, or cancel it and revive this one then.",
    ),
    "not-a-picture": Meaning(
        (422,), "What was sent as a picture is none that could be used.", "Send a PNG, JPEG, WebP or GIF as it is."
    ),
    "not-running": Meaning((409,), "Nobody runs the task at the moment.", "Read the task again: it may have ended."),
    "not-revivable": Meaning(
        (409,), "Only a dead or cancelled task can be revived.", "Submit a new task to run the work again."
    ),
    "nul-character": Meaning((422,), "A text holds the character NUL, which cannot be stored.", "Take it out."),
    "number-too-large": Meaning((422,), "A whole number does not fit into 64 bits.", "Send it as a text."),
    "payload-too-large": Meaning(
        (413,), "The payload is larger than it may be.", "Keep the bulk elsewhere and send its address."
    ),
    "provider-not-found": Meaning(
        (404,), "No provider has this name.", "`GET /api/v1/providers` lists those that are configured."
    ),
    "provider-required": Meaning(
        (422,), "This actor has no default provider.", "Name one; the detail lists those that can do it."
    ),
    "range-not-satisfiable": Meaning(
        (416,), "The range begins behind the file's end.", "`Content-Range` says how long the file is."
    ),
    "storage-unavailable": Meaning(
        (503,), "The media storage cannot be reached at the moment.", "Repeat the request after `Retry-After`."
    ),
    "task-not-found": Meaning(
        (404,),
        "There is no task by this id that your key may see. Somebody else's task is as if it did not exist.",
        "Take the `task_id` that the submit answered; `GET /api/v1/tasks` lists yours.",
    ),
    "too-many-attempts": Meaning(
        (429,), "Too many wrong keys came from your address.", "Wait for `Retry-After`; a valid key is never held up."
    ),
    "unauthorized": Meaning(
        (401,),
        "No valid key came with the request: none at all, a wrong one, or one that is revoked or expired. A "
        "browser's session has ended, or a link has signed somebody in before.",
        "Send `Authorization: Bearer wl_…`, or sign in again.",
    ),
    "unknown-actor": Meaning((422,), "No actor has this name.", "The detail lists those that there are."),
    "unknown-agent": Meaning((422,), "No agent has this name.", "The detail lists those that are configured."),
    "unknown-dependency": Meaning(
        (422,), "A task in `depends_on` does not exist for your key.", "Submit what it depends on first."
    ),
    "unknown-parameter": Meaning(
        (422,), "The query has a parameter that this call does not take.", "`errors` says which was probably meant."
    ),
    "unknown-parent": Meaning((422,), "`parent_task_id` names no task that your key may see.", "Leave it out."),
    "unknown-provider": Meaning(
        (422,), "No provider of this name does such tasks.", "The detail lists those that can do it."
    ),
    "unstorable-value": Meaning((422,), "Postgres cannot store or compare a value.", "Take out what the detail names."),
    "unsupported-content-encoding": Meaning(
        (415,), "The body is compressed or otherwise encoded.", "Send it as it is, without Content-Encoding."
    ),
    "unsupported-media-type": Meaning(
        (415,),
        "The body is declared as something else than JSON: a form, for instance.",
        "Say `Content-Type: application/json`; `curl --json` does.",
    ),
    "worker-not-found": Meaning(
        (404,), "No worker has this id.", "`GET /api/v1/workers` lists those that have been heard of."
    ),
    "worker-not-running": Meaning((409,), "The worker has stopped or is lost.", "There is nothing to be drained."),
    "workflow-cancelled": Meaning(
        (409,), "The workflow was cancelled: it takes no task, and gives none a new life.", "Submit a new one."
    ),
    "workflow-not-found": Meaning(
        (404,), "There is no workflow by this id that your key may see.", "`GET /api/v1/workflows` lists yours."
    ),
    "url-expired": Meaning((403,), "This media url was good for a while, which is over.", "Read its task again."),
}


def title_of(code: str) -> str:
    return code.replace("-", " ").capitalize()

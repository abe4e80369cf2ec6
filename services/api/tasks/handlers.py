"""Tasks over REST: submit, read, cancel, revive."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any
from uuid import UUID

import msgspec
from litestar import Request, Response, delete, get, post
from litestar.datastructures import State
from litestar.params import FromPath, HeaderParameter, QueryParameter
from pydantic import ValidationError

from windlass.services.api.access.audit import audit, audit_foreign_submissions, audit_foreign_task
from windlass.services.api.access.auth import Caller, require_admin, require_writer
from windlass.services.api.access.reasons import AskedReason, read_reason
from windlass.services.api.http.bodies import field_problem, read_json
from windlass.services.api.http.errors import Problem, invalid_fields
from windlass.services.api.tasks.long_poll import KeyEnded, wait_for_end
from windlass.services.api.tasks.relatives import joined_to_workflows, refuse_unknown_parents
from windlass.services.api.tasks.schemas import Sweep, error_for, task_document
from windlass.services.api.tasks.submission import (
    accept,
    batch_of,
    check_idempotency_key,
    read,
    under_idempotency_key,
    within,
)
from windlass.shared import tracing
from windlass.shared.concerns import Concern
from windlass.shared.db import Database
from windlass.shared.features.projects import operations as projects
from windlass.shared.states import REVIVE
from windlass.shared.states import State as TaskState
from windlass.shared.store import tasks
from windlass.shared.store.reading import listing, usage
from windlass.shared.store.rows import TaskRow
from windlass.shared.store.tasks import (
    KeyInFlight,
    KeyReused,
    ParentCancelled,
    Submission,
    UnknownDependency,
    WorkflowCancelled,
)
from windlass.shared.store.tasks.steps import finished_steps
from windlass.shared.store.workflows import reading as workflows
from windlass.shared.store.workflows.inputs import resolve

Asked = Request[Caller, None, State]
Wait = Annotated[float | None, QueryParameter(ge=0, le=50, description="Seconds to hold the answer back for its end.")]
IdempotencyKey = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        description="A repeat of the request under the same key within 24 hours is answered with the first task.",
    ),
]
REPLAYED = {"Idempotent-Replayed": "true"}

encode = msgspec.json.Encoder().encode


@post("/tasks", status_code=201)
async def submit_task(
    request: Asked, state: State, wait: Wait = None, idempotency_key: IdempotencyKey = None
) -> Response[dict[str, Any]]:
    """Accepts a task: once it answers 201 the task is stored for good."""
    return await submit_one(request, state, wait, idempotency_key)


@post("/tasks/{actor:str}", status_code=201, include_in_schema=False)  # a path for each actor is described
async def submit_for_actor(
    request: Asked, state: State, actor: FromPath[str], wait: Wait = None, idempotency_key: IdempotencyKey = None
) -> Response[dict[str, Any]]:
    """Accepts a task of that actor, whose payload's fields stand at the top level, beside the task's own. A field that
    is called as one of the task's needs `POST /tasks`."""
    return await submit_one(request, state, wait, idempotency_key, shortcut_for=actor)


@post("/tasks/batch", status_code=201)
async def submit_batch(
    request: Asked, state: State, idempotency_key: IdempotencyKey = None
) -> Response[dict[str, Any]]:
    """Accepts up to 1,000 tasks, all or none."""
    require_writer(request.user)
    check_idempotency_key(idempotency_key)
    wanted = batch_of(await read_json(request))
    actors = state.registry.actors
    with tracing.submitting() as span:
        accepted = [
            accept(each, request.user, state.settings, actors, below=f"/tasks/{number}")
            for number, each in enumerate(wanted)
        ]
        submissions = within(request, accepted)
        if idempotency_key is not None:
            submissions = under_idempotency_key(
                idempotency_key, submissions, [read(each) for each in wanted], state.settings, actors
            )
        await refuse_unknown_parents(state.pool, request.user, submissions, batch=True)
        submissions = await joined_to_workflows(state.pool, submissions)
        await audit_foreign_submissions(request, submissions)
        submissions, secrets = await state.endpoint_secrets.with_endpoints(submissions, request.user.user_id)
        with refusals_explained(submissions, batch=True):
            answers = await tasks.submit_batch(state.pool, submissions)
        span.note(messaging__batch__message_count=len(answers))
    documents = [
        {
            "task_id": each.task_id,
            "deduplicated": each.deduplicated,
            **secret_of(each.webhook_id, secrets, deduplicated=each.deduplicated),
        }
        for each in answers
    ]
    replayed = all(each.deduplicated for each in answers)
    return Response({"tasks": documents}, status_code=200 if replayed else 201, headers=REPLAYED if replayed else {})


@get("/tasks/{task_id:uuid}")
async def get_task(
    request: Asked, state: State, task_id: FromPath[UUID], wait: Wait = None
) -> Response[dict[str, Any]]:
    """One task, whole; with `wait` it answers 202 when the task has not ended in time."""
    row = await visible_task(state.pool, request.user, task_id)
    ended = True
    if wait is not None:
        row, ended = await wait_for_end(state, request.user, task_id, wait)
    document = task_document(row, request.user, state.media_links)
    document["error_history"] = await error_history(state.pool, request.user, row)
    if row.attempt > 0 and row.concerns & Concern.REFERENCES:
        found = await resolve(state.pool, task_id, largest_bytes=state.settings.largest_input_bytes)
        document["input"] = found.input
        if found.input is None:
            document["input_error"] = {"pointer": found.pointer, "detail": found.problem}
    if row.usage is not None:
        spent = await usage.by_attempt(state.pool, task_id, attempt=row.attempt, total=row.usage)
        document["usage_by_attempt"] = spent
    if steps := await steps_of(state.pool, row):
        document["steps"] = steps
    return json_response(document, 200 if ended else 202)


@post("/tasks/{task_id:uuid}/cancel", status_code=200)
async def cancel_task(request: Asked, state: State, task_id: FromPath[UUID]) -> Response[dict[str, Any]]:
    """200 when it is cancelled, 202 while its worker is stopping it."""
    require_writer(request.user)
    return await cancel(request, state, task_id, await read_reason(request))


@delete("/tasks/{task_id:uuid}", status_code=200)
async def delete_task(
    request: Asked, state: State, task_id: FromPath[UUID], reason: AskedReason = None
) -> Response[dict[str, Any]]:
    """The same as cancel: tasks are kept for ever."""
    return await cancel(request, state, task_id, reason)


@post("/tasks/{task_id:uuid}/retry", status_code=200)
async def retry_task(request: Asked, state: State, task_id: FromPath[UUID]) -> dict[str, Any]:
    """Gives a dead or cancelled task a new life."""
    require_writer(request.user)
    reason = await read_reason(request)
    before = await visible_task(state.pool, request.user, task_id)
    await audit_foreign_task(request, "task.retry", before, reason=reason)
    row = await tasks.revive(state.pool, task_id)
    if row is not None and row.is_owned:
        return await retry_run(request, state, before)
    if row is not None and row.duplicate_of is not None:
        detail = f"the task {row.duplicate_of} lives under the same dedupe_key, {row.dedupe_key}"
        raise Problem(409, "duplicate", detail)
    if row is not None and row.status in REVIVE.sources:
        await refuse_what_was_given_up(state.pool, row)
    if row is None or row.last_seq == before.last_seq:
        detail = f"only a dead or cancelled task can be revived; this one is {before.status}"
        raise Problem(409, "not-revivable", detail)
    return task_document(row, request.user, state.media_links)


@post("/tasks/requeue-orphaned", status_code=200)
async def requeue_orphaned(request: Asked, state: State) -> dict[str, Any]:
    """Runs the stale sweep now, for leases that ran out at least `max_age_seconds` ago."""
    require_admin(request.user)
    body = await read_json(request, optional=True)
    try:
        sweep = Sweep.model_validate(body)
    except ValidationError as error:
        raise invalid_fields(error, "invalid-request", Sweep) from error
    await audit(request, "tasks.requeue-orphaned", details=sweep.model_dump(exclude_none=True))
    rows = await tasks.stall(state.pool, expired_for_seconds=sweep.max_age_seconds, retries=state.settings.retries)
    return {"recovered": len(rows)}


async def submit_one(
    request: Asked,
    state: State,
    wait: float | None,
    idempotency_key: str | None,
    shortcut_for: str | None = None,
) -> Response[dict[str, Any]]:
    require_writer(request.user)
    check_idempotency_key(idempotency_key)
    body = await read_json(request)
    actors = state.registry.actors
    with tracing.submitting() as span:
        accepted = accept(body, request.user, state.settings, actors, shortcut_for=shortcut_for)
        (submission,) = within(request, [accepted])
        if idempotency_key is not None:
            wanted = [read(body, shortcut_for=shortcut_for)]
            (submission,) = under_idempotency_key(idempotency_key, [submission], wanted, state.settings, actors)
        await refuse_unknown_parents(state.pool, request.user, [submission])
        (submission,) = await joined_to_workflows(state.pool, [submission])
        await audit_foreign_submissions(request, [submission])
        (submission,), secrets = await state.endpoint_secrets.with_endpoints([submission], request.user.user_id)
        with refusals_explained([submission]):
            row, deduplicated = await store_one(state, submission)
        span.note(windlass__task_id=str(row.task_id), messaging__destination__name=row.queue)
    status = 200 if deduplicated else 201
    if wait is not None:
        try:
            row, ended = await wait_for_end(state, request.user, row.task_id, wait)
        except KeyEnded:
            ended = False  # it is stored, and its submitter has to know; what became of it is for a key that opens
        status = 200 if ended else 202
    document = task_document(row, request.user, state.media_links)
    document |= secret_of(row.webhook_id, secrets, deduplicated=deduplicated)
    headers = {"Location": f"/api/v1/tasks/{row.task_id}"}
    if deduplicated:
        document["deduplicated"] = True
        headers |= REPLAYED
    return json_response(document, status, headers)


def secret_of(webhook_id: UUID | None, secrets: Mapping[UUID, str], *, deduplicated: bool) -> dict[str, str]:
    """Of an endpoint that was made for the task's `webhook_url`: shown here, and never again."""
    secret = None if deduplicated or webhook_id is None else secrets.get(webhook_id)
    return {} if secret is None else {"webhook_secret": secret}


async def store_one(state: State, submission: Submission) -> tuple[TaskRow, bool]:
    """The task that the submission came to, and whether it was there before."""
    if submission.has_keys:
        (keyed,) = await tasks.submit_keyed(state.pool, [submission])
        return keyed, keyed.deduplicated
    if submission.has_relatives:
        (row,) = await tasks.submit(state.pool, [submission])
        return row, False
    return await state.group_commit.submit(submission), False


@contextmanager
def refusals_explained(submissions: Sequence[Submission], *, batch: bool = False) -> Iterator[None]:
    """What Postgres alone can find out about a submission, said in the client's terms."""
    try:
        yield
    except UnknownDependency as error:
        unknown = set(error.missing)
        pointers = [
            f"/tasks/{number}/depends_on" if batch else "/depends_on"
            for number, each in enumerate(submissions)
            if unknown & {str(task_id) for task_id in each.depends_on}
        ]
        errors = [{"pointer": pointer, "detail": str(error)} for pointer in pointers]
        raise Problem(422, "unknown-dependency", str(error), errors=errors) from error
    except ParentCancelled as error:
        detail = f"a task that is to be cancelled gets no more children: {', '.join(error.parents)}"
        raise Problem(409, "parent-cancelled", detail) from error
    except WorkflowCancelled as error:
        raise Problem(409, "workflow-cancelled", "a cancelled workflow takes no more tasks") from error
    except KeyReused as error:
        detail = "this Idempotency-Key came with another body before; take a new key for a new request"
        raise field_problem("/Idempotency-Key", "idempotency-key-reused", detail) from error
    except KeyInFlight as error:
        detail = "a request with the same key is still under way; ask again in a moment"
        raise Problem(409, "idempotency-key-in-flight", detail, headers={"Retry-After": "1"}) from error


async def cancel(request: Asked, state: State, task_id: UUID, reason: str | None) -> Response[dict[str, Any]]:
    require_writer(request.user)
    before = await visible_task(state.pool, request.user, task_id)
    await audit_foreign_task(request, "task.cancel", before, reason=reason)
    row = await tasks.cancel(state.pool, task_id)
    assert row is not None, "tasks are never deleted"
    if row.status in {TaskState.COMPLETED, TaskState.DEAD}:
        raise Problem(409, "not-cancellable", f"the task is {row.status} already")
    stopping = row.status != TaskState.CANCELLED
    document = task_document(row, request.user, state.media_links)
    return Response(document, status_code=202 if stopping else 200)


async def retry_run(request: Asked, state: State, before: TaskRow) -> dict[str, Any]:
    """Revives the task of a project's run, which only its project does, and only while it is idle."""
    refused = await projects.revive(state.features, UUID(before.project_id), before.task_id)
    if refused is not None and refused.reason == "project-archived":
        raise Problem(409, "project-archived", f"its project {before.project_id} is archived")
    if refused is not None:
        run_id = refused.open_run_id
        detail = f"its project {before.project_id} is at the run {run_id}; requeue the item, and it comes in its turn"
        raise Problem(409, "queue-already-running", detail, more={"run_id": str(run_id)})
    row = await visible_task(state.pool, request.user, before.task_id)
    if row.last_seq == before.last_seq:
        detail = f"only a dead or cancelled task can be revived; this one is {before.status}"
        raise Problem(409, "not-revivable", detail)
    return task_document(row, request.user, state.media_links)


async def refuse_what_was_given_up(db: Database, row: TaskRow) -> None:
    """Nothing of a cancelled workflow comes back."""
    if row.concerns & Concern.WORKFLOW and row.workflow_id is not None:
        workflow = await workflows.get(db, UUID(row.workflow_id))
        if workflow is not None and workflow.cancel_requested:
            raise Problem(409, "workflow-cancelled", f"its workflow {row.workflow_id} was cancelled")


async def visible_task(db: Database, caller: Caller, task_id: UUID) -> TaskRow:
    """A foreign task is as if it did not exist."""
    row = await tasks.get(db, task_id)
    if row is None or not caller.may_see(row.user_id):
        raise Problem(404, "task-not-found", f"there is no task {task_id}")
    return row


async def error_history(db: Database, caller: Caller, row: TaskRow) -> list[dict[str, Any] | None]:
    """Every attempt's error, oldest first; whose first attempt has not failed has none, and nobody is asked."""
    if row.error is None and row.attempt <= 1:
        return []
    histories = await listing.error_histories(db, [row.task_id])
    return [error_for(caller, error) for error in histories[row.task_id]]


async def steps_of(db: Database, row: TaskRow) -> list[dict[str, Any]]:
    """Those that have finished, in that order; who has never been started has none, and nobody is asked."""
    if row.attempt == 0:
        return []
    return [dict(step.items()) for step in await finished_steps(db, row.task_id)]


def json_response(document: dict[str, Any], status: int, headers: dict[str, str] | None = None) -> Response[Any]:
    """Encoded here: Litestar would look for a serialiser at each answer."""
    return Response(encode(document), status_code=status, headers=headers, media_type="application/json")


HANDLERS = [
    submit_task, submit_for_actor, submit_batch, get_task, cancel_task, delete_task,
    retry_task, requeue_orphaned,
]  # fmt: skip

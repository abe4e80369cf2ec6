"""Changes to many tasks over REST: accepted at once, done in chunks, watched by their id."""

from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

from litestar import Response, get, post
from litestar.datastructures import State
from litestar.params import FromPath
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from uuid_utils.compat import uuid7

from windlass.services.api.access.audit import audit
from windlass.services.api.access.auth import require_writer
from windlass.services.api.http.bodies import field_problem, read_json
from windlass.services.api.http.errors import Problem, invalid_fields
from windlass.services.api.tasks.handlers import Asked
from windlass.services.api.tasks.schemas import Label, Name
from windlass.shared.states import Lane
from windlass.shared.states import State as TaskState
from windlass.shared.store.reading.listing import Filter
from windlass.shared.store.rows import BulkJobRow
from windlass.shared.store.tasks import bulk


def one_or_many(value: object) -> object:
    return value if isinstance(value, list) or value is None else [value]


class BulkFilter(BaseModel):
    """The filters of `GET /tasks`, as JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    status: Annotated[list[TaskState] | None, Field(min_length=1), BeforeValidator(one_or_many)] = None
    actor: Name | None = None
    provider: Name | None = None
    lane: Lane | None = None
    user_id: Name | None = None
    tag: Annotated[list[Label] | None, Field(min_length=1), BeforeValidator(one_or_many)] = None
    project_id: Label | None = None
    workflow_id: Label | None = None
    workflow_run_id: Label | None = None
    interaction_id: Label | None = None
    parent_task_id: UUID | None = None
    error_type: Name | None = None
    fingerprint: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    created_after: AwareDatetime | None = None
    created_before: AwareDatetime | None = None
    updated_after: AwareDatetime | None = None
    q: Annotated[str, Field(min_length=3, max_length=200)] | None = None

    def as_filter(self) -> Filter:
        return Filter(**{name: getattr(self, name) for name in type(self).model_fields})


class Change(BaseModel):
    """What every change to many tasks says: to which, and whether it is meant."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    filter: BulkFilter = BulkFilter()
    all: bool = False
    dry_run: bool = False


class BulkChange(Change):
    """`POST /tasks/bulk`."""

    action: Literal["retry", "cancel"]


Body = TypeVar("Body", bound=Change)


@post("/tasks/bulk", status_code=202)
async def change_many(request: Asked, state: State) -> Response[dict[str, Any]]:
    """Retries or cancels every task that a filter means; with `dry_run` it only says how many there are."""
    require_writer(request.user)
    wanted = await read(request, BulkChange)
    return await start(request, state, wanted, wanted.action, wanted.filter.as_filter())


@get("/bulk/{bulk_id:uuid}")
async def get_bulk(request: Asked, state: State, bulk_id: FromPath[UUID]) -> dict[str, Any]:
    """How far a change to many tasks has come."""
    job = await bulk.get(state.pool, bulk_id)
    if job is None or not request.user.may_see(job.user_id):
        raise Problem(404, "bulk-not-found", f"there is no bulk job {bulk_id}")
    return bulk_document(job)


async def read(request: Asked, body: type[Body]) -> Body:
    document = await read_json(request)
    try:
        return body.model_validate(document)
    except ValidationError as error:
        raise invalid_fields(error, "invalid-bulk") from error


async def start(
    request: Asked, state: State, asked: Change, action: str, wanted: Filter, *, canary: int | None = None
) -> Response[dict[str, Any]]:
    """The one way into a bulk job, for every endpoint that begins one."""
    if asked.filter == BulkFilter() and not asked.all:
        detail = "an empty filter means every task: say so with `all`"
        raise field_problem("/filter", "empty-filter", detail)
    caller = request.user
    matched = await bulk.count(state.lists, action, wanted, owner=caller.own)
    if asked.dry_run:
        return Response({"matched": matched}, status_code=200)
    bulk_id = uuid7()
    said = {**asked.model_dump(mode="json", exclude_defaults=True), "matched": matched}
    await audit(request, f"tasks.bulk-{action}", bulk_id, said)
    await bulk.accept(
        state.pool,
        bulk_id,
        action,
        wanted,
        matched=matched,
        user_id=caller.user_id,
        scope_user_id=caller.own,
        canary=canary,
    )
    state.bulk_runner.wake()
    return Response({"bulk_id": bulk_id, "matched": matched}, status_code=202)


def bulk_document(job: BulkJobRow) -> dict[str, Any]:
    names = ("bulk_id", "action", "filter", "state", "matched", "done", "changed", "reason", "created_at", "updated_at")
    document = {name: job[name] for name in names}
    if job.canary is not None:
        document["canary"] = {"wanted": job.canary, "task_ids": job.canary_ids}
    return document


HANDLERS = [change_many, get_bulk]

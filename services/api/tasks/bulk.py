"""Changes to many tasks over REST: accepted at once, done in chunks by the janitor, watched by their id."""

from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

from litestar import Response, get, post
from litestar.datastructures import State
from litestar.params import FromPath
from pydantic import BeforeValidator, ConfigDict, Field, ValidationError
from uuid_utils.compat import uuid7

from windlass.services.api.access.audit import audit
from windlass.services.api.access.auth import require_writer
from windlass.services.api.access.reasons import Reason
from windlass.services.api.http.bodies import field_problem, read_json
from windlass.services.api.http.errors import Problem, invalid_fields
from windlass.services.api.tasks.handlers import Asked
from windlass.shared.filters import Filter
from windlass.shared.forms import Form, refuse_many_fields
from windlass.shared.store.rows import BulkJobRow
from windlass.shared.store.tasks import bulk


class Change(Form):
    """What every change to many tasks says: to which, and whether it is meant."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    filter: Annotated[Filter, BeforeValidator(refuse_many_fields)] = Filter()
    all: Annotated[bool, Field(strict=True)] = False
    dry_run: Annotated[bool, Field(strict=True)] = False
    reason: Reason | None = None


class BulkChange(Change):
    """`POST /tasks/bulk`."""

    action: Literal["retry", "cancel"]


Body = TypeVar("Body", bound=Change)


@post("/tasks/bulk", status_code=202)
async def change_many(request: Asked, state: State) -> Response[dict[str, Any]]:
    """Retries or cancels every task that a filter means; with `dry_run` it only says how many there are."""
    require_writer(request.user)
    wanted = await read(request, BulkChange)
    return await start(request, state, wanted, wanted.action, wanted.filter)


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
        raise invalid_fields(error, "invalid-bulk", body) from error


async def start(
    request: Asked, state: State, asked: Change, action: str, wanted: Filter, *, canary: int | None = None
) -> Response[dict[str, Any]]:
    """The one way into a bulk job, for every endpoint that begins one."""
    if asked.filter == Filter() and not asked.all:
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
    return Response({"bulk_id": bulk_id, "matched": matched}, status_code=202)


def bulk_document(job: BulkJobRow) -> dict[str, Any]:
    names = (
        "bulk_id", "action", "filter", "state", "matched", "done", "changed", "duplicates", "requeued", "reason",
        "created_at", "updated_at",
    )  # fmt: skip
    document = {name: job[name] for name in names}
    if job.canary is not None:
        document["canary"] = {"wanted": job.canary, "task_ids": job.canary_ids}
    return document


HANDLERS = [change_many, get_bulk]

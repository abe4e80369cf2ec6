"""Embedding models and jobs over REST: which vectors there are, and what became of making them."""

from typing import Annotated, Any, Literal
from uuid import UUID

from litestar import Response, delete, get, post
from litestar.datastructures import State
from litestar.params import FromPath, QueryParameter
from pydantic import ConfigDict, Field, ValidationError

from windlass.services.api.access.audit import audit
from windlass.services.api.access.auth import require_admin, require_overview
from windlass.services.api.http.bodies import field_problem, read_json
from windlass.services.api.http.errors import Problem, invalid_fields
from windlass.services.api.http.pages import page
from windlass.services.api.tasks.handlers import Asked, json_response
from windlass.services.api.tasks.listing import Cursor, Limit
from windlass.shared.filters import Label, Name
from windlass.shared.forms import Form
from windlass.shared.store import tasks
from windlass.shared.store.memory import jobs, models
from windlass.shared.store.memory.models import CountedModel
from windlass.shared.store.rows import EmbeddingJobRow
from windlass.shared.suggestions import meant

SHOWN = ("model_id", "name", "provider", "dimensions", "state", "vectors", "missing", "activate_when_filled",
         "created_at", "activated_at")  # fmt: skip
SHOWN_OF_JOBS = ("job_id", "model_id", "task_id", "state", "error", "created_at", "updated_at")


class NewModel(Form):
    """A model to be."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: Annotated[Label, Field(description="As its provider calls it.", examples=["text-embedding-3-small"])]
    provider: Annotated[Name, Field(description="One that serves `embed` in the TOML file.")]
    dimensions: Annotated[int, Field(ge=1, le=4096, description="How wide its vectors are.")]
    activate_when_filled: Annotated[
        bool, Field(description="Take over as soon as what is there has its vectors, and not when somebody says so.")
    ] = False


@get("/embedding-models")
async def list_embedding_models(request: Asked, state: State) -> dict[str, Any]:
    """The models that vectors are of; questions are asked in the active one's."""
    await state.catch_up_on_memory.before_read()
    shown = [model_document(row) for row in await models.every(state.lists)]
    if not request.user.sees_everything:
        for each in shown:  # counts over all users
            each["vectors"] = each["missing"] = None
    return {"items": shown}


@post("/embedding-models", status_code=201)
async def create_embedding_model(request: Asked, state: State) -> Response[dict[str, Any]]:
    """A model whose vectors new events get from now on, and those that are there by and by, newest first."""
    require_admin(request.user)
    try:
        wanted = NewModel.model_validate(await read_json(request))
    except ValidationError as error:
        raise invalid_fields(error, "invalid-request", NewModel) from error
    serving = [name for name, each in state.settings.providers.items() if "embed" in each.actors]
    if wanted.provider not in serving:
        detail = f"no provider {wanted.provider} does embed tasks; {meant(wanted.provider, serving)}"
        raise field_problem("/provider", "unknown-provider", detail)
    model_id = await models.create(state.pool, **wanted.model_dump())
    if model_id is None:
        raise Problem(409, "model-exists", f"there is a model {wanted.name} of {wanted.provider} already")
    await audit(request, "embedding-model.create", model_id, wanted.model_dump())
    return json_response(await _document(state, model_id), 201, {"Location": "/api/v1/embedding-models"})


@post("/embedding-models/{model_id:uuid}/activate", status_code=200)
async def activate_embedding_model(request: Asked, state: State, model_id: FromPath[UUID]) -> dict[str, Any]:
    """From here on questions are asked in its vectors; the one before is kept, and gets no more."""
    require_admin(request.user)
    if not await models.activate(state.pool, model_id):
        raise no_such_model(model_id)
    await audit(request, "embedding-model.activate", model_id, {})
    return await _document(state, model_id)


@delete("/embedding-models/{model_id:uuid}", status_code=204)
async def delete_embedding_model(request: Asked, state: State, model_id: FromPath[UUID]) -> None:
    """With all its vectors and jobs; not the active one."""
    require_admin(request.user)
    was = await models.delete(state.pool, model_id)
    if was is None:
        raise no_such_model(model_id)
    if was == "active":
        raise Problem(409, "model-active", "the active model is what memory is searched by; activate another one first")
    await audit(request, "embedding-model.delete", model_id, {"was": was})


@get("/embedding-jobs")
async def list_embedding_jobs(
    request: Asked,
    state: State,
    status: Annotated[
        Literal["waiting", "done", "failed"] | None, QueryParameter(name="state", description="What became of it.")
    ] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response[dict[str, Any]]:
    """Jobs that bring vectors to up to 64 events each, newest first. They mix what is of several users."""
    require_overview(request.user)
    await state.catch_up_on_memory.before_read()

    async def read(position: Any, number: int) -> list[tuple[Any, Any]]:
        rows = await jobs.newest(state.lists, state=status, before=position, limit=number)
        return [(row.job_id, job_document(row)) for row in rows]

    return await page(read, cursor=cursor, limit=limit)


@post("/embedding-jobs/{job_id:uuid}/retry", status_code=202)
async def retry_embedding_job(request: Asked, state: State, job_id: FromPath[UUID]) -> dict[str, Any]:
    """Gives the task of a failed job a new life."""
    require_admin(request.user)
    await state.catch_up_on_memory.before_read()
    row = await jobs.get(state.pool, job_id)
    if row is None:
        raise Problem(404, "embedding-job-not-found", f"there is no embedding job {job_id}")
    if row.state != "failed":
        raise Problem(409, "not-failed", f"only a failed job is retried; this one is {row.state}")
    await audit(request, "embedding-job.retry", job_id, {"task_id": str(row.task_id)})
    await tasks.revive(state.pool, row.task_id)
    await state.catch_up_on_memory.before_read()
    again = await jobs.get(state.pool, job_id)
    return job_document(again or row)


async def _document(state: State, model_id: UUID) -> dict[str, Any]:
    return next(model_document(row) for row in await models.every(state.pool) if row.model_id == model_id)


def model_document(row: CountedModel) -> dict[str, Any]:
    return {name: row[name] for name in SHOWN}


def job_document(row: EmbeddingJobRow) -> dict[str, Any]:
    return {**{name: row[name] for name in SHOWN_OF_JOBS}, "events": len(row.event_ids)}


def no_such_model(model_id: UUID) -> Problem:
    return Problem(404, "embedding-model-not-found", f"there is no embedding model {model_id}")


HANDLERS = [
    list_embedding_models,
    create_embedding_model,
    activate_embedding_model,
    delete_embedding_model,
    list_embedding_jobs,
    retry_embedding_job,
]

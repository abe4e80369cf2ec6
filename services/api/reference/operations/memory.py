"""What memory takes and answers, beside what its handlers say themselves."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from windlass.services.api.memory.models import NewModel
from windlass.services.api.memory.search import Question
from windlass.services.api.reference.documents.tasks import Document
from windlass.services.api.reference.operation import Answer, Operation


class AgentEventDocument(Document):
    """One end of one life of a task: what was asked, what came out, how it ended; scrubbed and short."""

    event_id: UUID
    task_id: UUID
    life: Annotated[int, Field(description="The task's first, or one more for each time it was revived.")]
    attempt: int
    user_id: str
    actor: str
    provider: str
    subagent_type: str | None
    project_id: str | None
    workflow_id: str | None
    status: Literal["completed", "dead", "cancelled"]
    title: str
    text: str
    data: Annotated[dict[str, Any], Field(description="Its `usage`, and the `error_type` of one that died.")]
    at: datetime


class AgentEventPage(Document):
    """What agents did, newest first."""

    items: list[AgentEventDocument]
    next_cursor: Annotated[str | None, Field(description="There are more: pass it as `cursor`.")] = None


class HitDocument(Document):
    """An event that was found, and by what."""

    event: AgentEventDocument
    score: Annotated[float, Field(description="Its ranks, fused: it orders the answer and means nothing by itself.")]
    matched: list[Literal["text", "vector"]]


class ModelNameDocument(Document):
    """The model whose vectors were compared."""

    model_id: UUID
    name: str


class FoundDocument(Document):
    """The nearest first, and how they were come by."""

    items: list[HitDocument]
    model: ModelNameDocument | None
    coverage: Annotated[
        float | None, Field(description="The share of what could be found that has a vector of the model.")
    ]
    exact: Annotated[bool, Field(description="All vectors were compared, not only some: see docs/decisions/0066.")]
    degraded: Annotated[bool, Field(description="No vector for the question came in time: words alone.")]


class EmbeddingModelDocument(Document):
    """A model that vectors are of."""

    model_id: UUID
    name: str
    provider: str
    dimensions: int
    state: Literal["building", "active", "retired"]
    vectors: Annotated[int | None, Field(description="How many events have one; null for users.")]
    missing: Annotated[int | None, Field(description="How many wait for theirs; null for users.")]
    activate_when_filled: bool
    created_at: datetime
    activated_at: datetime | None


class EmbeddingModelList(Document):
    """All of them."""

    items: list[EmbeddingModelDocument]


class JobErrorDocument(Document):
    """Why it failed."""

    type: str | None
    message: str | None


class EmbeddingJobDocument(Document):
    """Up to 64 events whose vectors one call brings."""

    job_id: UUID
    model_id: UUID
    task_id: UUID
    state: Literal["waiting", "done", "failed"]
    events: int
    error: JobErrorDocument | None
    created_at: datetime
    updated_at: datetime


class EmbeddingJobPage(Document):
    """Jobs, newest first."""

    items: list[EmbeddingJobDocument]
    next_cursor: Annotated[str | None, Field(description="There are more: pass it as `cursor`.")] = None


MODEL = "/api/v1/embedding-models/{model_id}"
ONE_MODEL = (EmbeddingModelDocument,)

MEMORY_OPERATIONS: dict[tuple[str, str], Operation] = {
    ("GET", "/api/v1/agent-events"): Operation(
        "Memory", "List what agents did", {200: Answer("A page.", (AgentEventPage,))}
    ),
    ("GET", "/api/v1/agent-events/{event_id}"): Operation(
        "Memory", "Read an agent event", {200: Answer("The event.", (AgentEventDocument,))}, problems=(404,)
    ),
    ("DELETE", "/api/v1/agent-events/{event_id}"): Operation(
        "Memory", "Forget an agent event", {204: Answer("It is gone, with its vectors.")}, problems=(403, 404)
    ),
    ("GET", "/api/v1/memory/search"): Operation(
        "Memory", "Search what agents did", {200: Answer("What was found.", (FoundDocument,))}, problems=(422,)
    ),
    ("POST", "/api/v1/memory/search"): Operation(
        "Memory",
        "Search what agents did, by a body",
        {200: Answer("What was found.", (FoundDocument,))},
        body=Question,
        example={"q": "which lighthouses were counted?", "limit": 5},
    ),
    ("GET", "/api/v1/embedding-models"): Operation(
        "Memory", "List embedding models", {200: Answer("All of them.", (EmbeddingModelList,))}
    ),
    ("POST", "/api/v1/embedding-models"): Operation(
        "Memory",
        "Add an embedding model",
        {201: Answer("It is being built.", ONE_MODEL, headers={"Location": "Where they are listed."})},
        problems=(403, 409),
        body=NewModel,
        example={"name": "text-embedding-3-small", "provider": "vectors", "dimensions": 1536},
    ),
    ("POST", f"{MODEL}/activate"): Operation(
        "Memory", "Activate an embedding model", {200: Answer("It is the active one.", ONE_MODEL)}, problems=(403, 404)
    ),
    ("DELETE", MODEL): Operation(
        "Memory",
        "Delete an embedding model",
        {204: Answer("It is gone, with its vectors.")},
        problems=(403, 404, 409),
    ),
    ("GET", "/api/v1/embedding-jobs"): Operation(
        "Memory", "List embedding jobs", {200: Answer("A page.", (EmbeddingJobPage,))}, problems=(403,)
    ),
    ("POST", "/api/v1/embedding-jobs/{job_id}/retry"): Operation(
        "Memory",
        "Retry an embedding job",
        {202: Answer("It waits again.", (EmbeddingJobDocument,))},
        problems=(403, 404, 409),
    ),
}

"""The shapes of what was generated and of its files."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from windlass.services.api.reference.documents.tasks import Document
from windlass.shared.order_states import OrderState


class ContentDocument(Document):
    """One file of a generation."""

    content_id: UUID
    index: Annotated[int, Field(description="Its place among the generation's files, from 0.")]
    media_type: Annotated[str, Field(examples=["image/png"])]
    extension: Annotated[str, Field(examples=["png"])]
    size_bytes: int
    url: Annotated[str, Field(description="Shows the file without a key, for a while.")]
    provider_url: Annotated[str | None, Field(description="Where it came from; null for users.")]


class GenerationDocument(Document):
    """One order at a provider, and what came of it."""

    generation_id: UUID
    task_id: Annotated[UUID | None, Field(description="Null for what a user has brought.")]
    provider: str
    operation: Annotated[str, Field(examples=["txt2img"])]
    status: OrderState
    provider_job_id: Annotated[str | None, Field(description="The provider's own id of the job; null for users.")]
    request: Annotated[dict[str, Any], Field(description="What was ordered, without secrets.")]
    source_data: Any
    prompt_id: str | None
    workflow_run_id: str | None
    interaction_id: str | None
    created_at: datetime
    contents: list[ContentDocument]


class GenerationPage(Document):
    """Generations, newest first."""

    items: list[GenerationDocument]
    next_cursor: Annotated[str | None, Field(description="There are more: pass it as `cursor`.")] = None


class UploadDocument(Document):
    """A picture that has been kept."""

    content_id: Annotated[UUID, Field(description="For `source_image` of a media task.")]
    media_type: Annotated[str, Field(examples=["image/png"])]
    extension: Annotated[str, Field(examples=["png"])]
    size_bytes: int
    url: Annotated[str, Field(description="Shows the file without a key, for a while.")]


class HeardDocument(Document):
    """Nothing: a caller learns no more than that it was heard."""

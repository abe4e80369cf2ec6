"""What was generated, and its files."""

from datetime import datetime
from typing import Any

import msgspec

from windlass.client.task import Document


class Content(Document, frozen=True, kw_only=True):
    """One file; `url` shows it without a key, for a while."""

    content_id: str
    index: int
    media_type: str
    extension: str
    size_bytes: int
    url: str
    provider_url: str | None = None


class Generation(Document, frozen=True, kw_only=True):
    """One order at a provider, and the files that came of it."""

    generation_id: str
    task_id: str | None
    provider: str
    operation: str
    status: str
    created_at: datetime
    provider_job_id: str | None = None
    request: dict[str, Any] = msgspec.field(default_factory=dict)
    source_data: Any = None
    prompt_id: str | None = None
    workflow_run_id: str | None = None
    interaction_id: str | None = None
    contents: tuple[Content, ...] = ()

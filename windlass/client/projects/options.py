"""What can be said of a project and of its items."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict
from uuid import UUID

from windlass.client.options import Moment, Priority
from windlass.client.projects.documents import OnFailure

ProjectId = str | UUID
ItemId = str | UUID


class ItemFields(TypedDict, total=False):
    """A task's fields, as far as an item and a project's defaults may have them."""

    actor: str
    payload: Mapping[str, Any]
    provider: str | None
    task_type: str | None
    priority: int | Priority | None
    max_retries: int | None
    retry_delays: Sequence[float] | Mapping[str, Any] | None
    timeout_seconds: float | None
    max_age_seconds: float | None
    run_at: Moment | None
    delay_seconds: float | None
    tags: Sequence[str] | None


class NewItem(ItemFields, total=False):
    """One item of a backlog: what it leaves out the project's defaults give."""

    title: str | None


class ProjectChange(TypedDict, total=False):
    """Items keep the defaults that they were written under."""

    name: str
    defaults: ItemFields
    on_failure: OnFailure

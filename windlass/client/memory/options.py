"""What can be asked of memory and for figures."""

from datetime import date
from typing import TypedDict
from uuid import UUID

from windlass.client.options import Moment, TaskId

EventId = str | UUID
ModelId = str | UUID
JobId = str | UUID
Day = date | str


class Scope(TypedDict, total=False):
    """Where to look."""

    project_id: str | None
    subagent_type: str | None
    created_after: Moment | None


class EventFilter(TypedDict, total=False):
    """Which agent events."""

    task_id: TaskId | None
    actor: str | None
    status: str | None
    subagent_type: str | None
    project_id: str | None
    workflow_id: str | None
    user_id: str | None

"""What can be said of a schedule."""

from collections.abc import Mapping
from typing import Any, Literal, TypedDict
from uuid import UUID

from windlass.client.options import NewTask
from windlass.client.schedules.documents import CatchUp, Overlap

ScheduleName = str | UUID
"""Its name, or its id."""


class ProjectToRun(TypedDict, total=False):
    """A project whose next item is run, or all of them."""

    project_id: str
    mode: Literal["single", "loop"]


class Target(TypedDict, total=False):
    """What is started: one of these. A workflow is written as `POST /workflows` takes it."""

    task: NewTask
    workflow: Mapping[str, Any]
    project: ProjectToRun


class Times(TypedDict, total=False):
    """When it is due: `cron` in `timezone`, or every so many seconds."""

    cron: str | None
    every_seconds: int | None
    timezone: str | None


class ScheduleFields(Times, total=False):
    """What becomes of a due time while the last one lives, or that nobody was there for; None is as if not given."""

    overlap: Overlap | None
    catch_up: CatchUp | None
    catch_up_window_seconds: float | None
    jitter_seconds: float | None
    pause_after_failures: int | None


class ScheduleChange(ScheduleFields, total=False):
    """What is to be another; what is not named stays. `pause_after_failures=None` takes that away."""

    name: str
    target: Target

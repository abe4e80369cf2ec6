"""The shapes that come in, checked field by field."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, model_validator

from windlass.services.api.access.reasons import Reason
from windlass.shared.filters import Label
from windlass.shared.schedules.definition import STRICT, Cron, Definition, EverySeconds, Target, Times, Timezone

MOST_BACKFILLED = 100

ScheduleName = Annotated[
    Label,
    Field(
        max_length=100,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.-]*$",
        description="One of its owner's has it, and it is as good as the id in every path.",
    ),
]


class NewSchedule(Definition):
    """A schedule to be."""

    name: ScheduleName


class ScheduleChange(BaseModel):
    """What is to be another."""

    model_config = STRICT

    name: ScheduleName | None = None
    cron: Cron = None
    every_seconds: EverySeconds = None
    timezone: Timezone | None = None
    target: Target | None = None
    overlap: Literal["skip", "queue-one", "allow", "cancel-previous"] | None = None
    catch_up: Literal["none", "latest", "all"] | None = None
    catch_up_window_seconds: float | None = None
    jitter_seconds: float | None = None
    pause_after_failures: int | None = None


class Preview(Times):
    """Times to look at."""

    count: Annotated[int, Field(ge=1, le=100, description="How many.")] = 5


class Backfill(BaseModel):
    """Which due times are to be started now, both ends with."""

    model_config = STRICT

    begin: Annotated[datetime, Field(alias="from", strict=False, description="From when on, ISO 8601.")]
    end: Annotated[datetime, Field(alias="to", strict=False, description="Until when.")]
    reason: Reason | None = None

    @model_validator(mode="after")
    def _are_moments(self) -> Self:
        if self.begin.tzinfo is None or self.end.tzinfo is None:
            raise ValueError("a moment needs its offset from UTC, as 2026-06-01T12:00:00Z")
        if self.end < self.begin:
            raise ValueError("`to` is before `from`")
        return self

"""The shapes that come in, checked field by field."""

from datetime import UTC, datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from windlass.services.api.access.reasons import Reason
from windlass.shared.filters import Label, TextualTime
from windlass.shared.forms import Form
from windlass.shared.schedules.definition import STRICT, Cron, Definition, EverySeconds, Target, Times, Timezone
from windlass.shared.wording import Shaped

MOST_BACKFILLED = 100
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def after_the_epoch(value: datetime) -> datetime:
    """No backfill is meant to begin earlier, and calculations with time zones overflow at the edge of the calendar."""
    if value < EPOCH:
        raise ValueError("must not be before 1970-01-01T00:00:00Z")
    return value


PastMoment = Annotated[TextualTime, AfterValidator(after_the_epoch)]

ScheduleName = Annotated[
    Label,
    Field(
        max_length=100,
        description="One of its owner's has it, and it is as good as the id in every path.",
    ),
    Shaped(
        r"^[A-Za-z0-9][A-Za-z0-9 _.-]*$",
        "must begin with a letter or a digit, and have only letters, digits, spaces, `_`, `.` and `-`",
    ),
]


class NewSchedule(Definition):
    """A schedule to be."""

    name: ScheduleName


class ScheduleChange(Form):
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


class Backfill(Form):
    """Which due times are to be started now, both ends with."""

    model_config = STRICT

    begin: Annotated[PastMoment, Field(alias="from", description="From when on, ISO 8601.")]
    end: Annotated[PastMoment, Field(alias="to", description="Until when.")]
    reason: Reason | None = None

    @model_validator(mode="after")
    def _are_in_order(self) -> Self:
        if self.end < self.begin:
            raise ValueError("`to` is before `from`")
        return self

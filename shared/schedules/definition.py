"""A schedule as people write it: over REST, in the configuration and beside an actor."""

from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import ConfigDict, Field, field_validator, model_validator

from windlass.shared.forms import Form
from windlass.shared.schedules.times import fault_of_cron, fault_of_zone
from windlass.shared.schedules.words import Kind
from windlass.shared.wording import A_UUID, Shaped

STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)

Cron = Annotated[
    str | None, Field(max_length=200, description="Five fields: minute, hour, day, month, day of the week.")
]
EverySeconds = Annotated[
    int | None, Field(ge=10, le=366 * 86400, description="Instead of `cron`: every so many seconds.")
]
Timezone = Annotated[str, Field(max_length=100, description="In which zone `cron` is meant: `Europe/Berlin`, `UTC`.")]


class ProjectTarget(Form):
    """A project that is to be run."""

    model_config = STRICT

    project_id: Annotated[
        str,
        Field(description="The project."),
        Shaped(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", f"must be {A_UUID}"),
    ]
    mode: Literal["single", "loop"] = "single"

    @property
    def id(self) -> UUID:
        return UUID(self.project_id)


class Target(Form):
    """What is started: one of these."""

    model_config = STRICT

    task: Annotated[dict[str, Any] | None, Field(description="A task, as `POST /tasks` takes it.")] = None
    workflow: Annotated[dict[str, Any] | None, Field(description="A workflow, as `POST /workflows` takes it.")] = None
    project: Annotated[ProjectTarget | None, Field(description="A project's next run.")] = None

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if sum(getattr(self, kind) is not None for kind in Kind) != 1:
            raise ValueError("name one: `task`, `workflow` or `project`")
        return self

    @property
    def kind(self) -> Kind:
        return next(kind for kind in Kind if getattr(self, kind) is not None)


class Times(Form):
    """When it is due."""

    model_config = STRICT

    cron: Cron = None
    every_seconds: EverySeconds = None
    timezone: Timezone = "UTC"

    @field_validator("cron")
    @classmethod
    def _can_be_read(cls, cron: str | None) -> str | None:
        if cron is not None and (fault := fault_of_cron(cron)):
            raise ValueError(fault)
        return cron

    @field_validator("timezone")
    @classmethod
    def _is_known(cls, timezone: str) -> str:
        if fault := fault_of_zone(timezone):
            raise ValueError(fault)
        return timezone

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.cron is None) == (self.every_seconds is None):
            raise ValueError("give `cron` or `every_seconds`, one of them")
        return self


class Definition(Times):
    """What is started when, and what becomes of a due time that something is in the way of."""

    target: Annotated[Target, Field(description="What is started: `task`, `workflow` or `project`.")]
    overlap: Annotated[
        Literal["skip", "queue-one", "allow", "cancel-previous"],
        Field(description="What becomes of a due time while what was started before still lives."),
    ] = "skip"
    catch_up: Annotated[
        Literal["none", "latest", "all"],
        Field(description="Which due times are made up for that nobody was there for."),
    ] = "latest"
    catch_up_window_seconds: Annotated[
        float, Field(ge=0, le=7 * 86400, strict=False, description="How late a due time may be made up for.")
    ] = 3600
    jitter_seconds: Annotated[
        float, Field(ge=0, le=86400, strict=False, description="Each due time is so late at most, always by the same.")
    ] = 0
    pause_after_failures: Annotated[
        int | None, Field(ge=1, le=1_000_000, description="So many failures in a row pause it.")
    ] = None

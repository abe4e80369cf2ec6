"""A task to be, as it is asked for: by a client over REST, or by an actor that makes a child."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)

from windlass.shared.filters import Id, Label, Name, TextualTime
from windlass.shared.forms import Form, at_most
from windlass.shared.priorities import Priority, number_of
from windlass.shared.retry_delays import TaskDelays
from windlass.shared.scrubbing import withhold_label
from windlass.shared.urls import EndpointUrl

HORIZON_SECONDS = 366 * 86400


def without_secrets(text: str) -> str:
    """For what tells one thing from another: with something taken out it could mean another's."""
    if withhold_label(text) != text:
        raise ValueError("holds a key, an Authorization value or credentials in a URL, which are stored nowhere")
    return text


UserId = Annotated[Name, AfterValidator(without_secrets)]


class Dependency(Form):
    """Another task that this one waits for: to complete, or to end in any way."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    key: Annotated[Id, Field(description="Its id.")]
    on: Annotated[
        Literal["completed", "ended"], Field(description="`ended` starts after a failure, too; it buries nobody.")
    ] = "completed"


ID, DEPENDENCY = "an id", "a dependency"
"""Which of the two an entry of `depends_on` is; its place is said without it."""


def kind_of_dependency(entry: object) -> str:
    return DEPENDENCY if isinstance(entry, dict | BaseModel) else ID


class Approval(Form):
    """What a person is asked before a task may start."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    message: Annotated[
        Annotated[str, Field(min_length=1, max_length=2000), AfterValidator(withhold_label)],
        Field(description="The question, for whoever decides."),
    ]
    expires_in_seconds: Annotated[
        float | None,
        Field(gt=0, le=HORIZON_SECONDS, description="Nobody's word for so long, once it is asked for, is a no."),
    ] = None


class NewTask(Form):
    """A task to be, as `POST /tasks` takes it and as each item of a batch is written."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    actor: Annotated[Name, Field(description="The kind of work.", examples=["probe"])]
    payload: dict[str, Any] = Field(
        default_factory=dict, description="What the actor needs; checked by its own schema."
    )
    provider: Annotated[Name | None, Field(description="Who does the work; the actor's default otherwise.")] = None
    task_type: Annotated[Label | None, Field(description="A word of your own for the kind of task.")] = None
    priority: Annotated[
        Annotated[int, Field(ge=0, le=9)],
        BeforeValidator(number_of, json_schema_input_type=Priority),
        Field(description="0 `critical`, 1 `high`, 2 `medium`, 3 `low`, as number or word; 4 to 9 below."),
    ] = 2
    max_retries: Annotated[
        int | None,
        Field(ge=0, le=100, description="So many failures are tried again; the configured number otherwise."),
    ] = None
    retry_delays: Annotated[
        TaskDelays | None,
        Field(description="Seconds before each retry, the last repeated; or by type of error, as lists or curves."),
    ] = None
    timeout_seconds: Annotated[
        float | None, Field(gt=0, le=7 * 86400, description="How long one attempt may take; the actor's own otherwise.")
    ] = None
    max_age_seconds: Annotated[
        float | None, Field(gt=0, le=100 * 366 * 86400, description="Older than this it is buried, not started.")
    ] = None
    run_at: Annotated[
        TextualTime | None,
        Field(description="Not before this time, with its zone; within a year. One that is past means now."),
    ] = None
    delay_seconds: Annotated[
        float | None, Field(ge=0, le=HORIZON_SECONDS, description="Not before so many seconds from now.")
    ] = None
    tags: Annotated[list[Label], Field(max_length=50, description="Words to find it by."), at_most(50)] = Field(
        default_factory=list
    )
    project_id: Annotated[Label | None, Field(description="The project it belongs to.")] = None
    workflow_id: Annotated[Label | None, Field(description="The workflow it belongs to.")] = None
    parent_task_id: Annotated[Id | None, Field(description="The task that this one came out of.")] = None
    depends_on: Annotated[
        list[
            Annotated[
                Annotated[Id, Tag(ID)] | Annotated[Dependency, Tag(DEPENDENCY)], Discriminator(kind_of_dependency)
            ]
        ],
        at_most(1000),
        Field(
            max_length=1000,
            description="Starts when all of these tasks have completed: ids, or `{key, on}` for one that may end in "
            'any way. The payload may refer to their results: `{"$from": id, "path": "/summary"}`.',
        ),
    ] = Field(default_factory=list)
    approval: Annotated[
        Approval | None, Field(description="Ask a person before it starts: `POST /tasks/{id}/approve` or `/reject`.")
    ] = None
    dedupe_key: Annotated[
        Annotated[str, Field(min_length=1, max_length=255), AfterValidator(without_secrets)] | None,
        Field(
            description="While a task of yours under this key lives or has completed, a repeat answers with that task.",
        ),
    ] = None
    dedupe_ttl_seconds: Annotated[
        float | None,
        Field(gt=0, le=366 * 86400, description="How long the `dedupe_key` means this task; as configured otherwise."),
    ] = None
    webhook_url: Annotated[
        EndpointUrl | None,
        Field(
            description="Tells its end there: to your webhook for this url, or to one that is made for it, whose "
            "`webhook_secret` is in this answer alone.",
        ),
    ] = None
    user_id: Annotated[UserId | None, Field(description="Whose task it is; for admins alone.")] = None

    @field_validator("run_at")
    @classmethod
    def _a_time_that_can_be_kept(cls, run_at: datetime | None) -> datetime | None:
        """In UTC: Postgres does not read every zone that ISO 8601 can write. A time before the year 1 is past, too."""
        try:
            in_utc = run_at and run_at.astimezone(UTC)
        except OverflowError:
            in_utc = (
                datetime.max.replace(tzinfo=UTC) if run_at and run_at.year > 1 else datetime.min.replace(tzinfo=UTC)
            )
        if in_utc and in_utc > datetime.now(UTC) + timedelta(seconds=HORIZON_SECONDS):
            raise ValueError(f"must be within {HORIZON_SECONDS // 86400} days from now")
        return in_utc

    @model_validator(mode="after")
    def _one_time_only(self) -> "NewTask":
        if self.run_at is not None and self.delay_seconds is not None:
            raise ValueError("give run_at or delay_seconds, not both")
        return self

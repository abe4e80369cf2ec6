"""The filters of a list of tasks, declared once: the api reads them from a query and from JSON and describes them, the
store looks them up. The client stands alone and names them again; a test holds it to these."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, ClassVar, get_args, get_type_hints
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, ConfigDict, Field
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from windlass.shared.forms import at_most
from windlass.shared.scrubbing import withhold_label
from windlass.shared.states import Lane, State


def one_or_many(value: object) -> object:
    return value if isinstance(value, list) or value is None else [value]


Name = Annotated[str, Field(min_length=1, max_length=200)]
Label = Annotated[Name, AfterValidator(withhold_label)]
"""A word to find things by: kept, listed and logged in many places, and without secrets from the beginning."""

Fingerprint = Annotated[str, Field(min_length=1, max_length=1000)]


def only_text(value: object) -> object:
    """A number could be seconds or milliseconds, and nobody has to guess."""
    if isinstance(value, str | datetime) or value is None:
        return value
    raise PydanticCustomError("datetime_type", "not a time")


def in_utc(value: datetime) -> datetime:
    """Arithmetic on a moment whose UTC time lies outside of the calendar raises OverflowError."""
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise PydanticCustomError("datetime_range", "must lie within the years 1 to 9999, in UTC") from None


TextualTime = Annotated[AwareDatetime, Field(strict=False), AfterValidator(in_utc), BeforeValidator(only_text)]
Moment = Annotated[datetime, AwareDatetime, AfterValidator(in_utc), BeforeValidator(only_text)]
Id = Annotated[UUID, Field(strict=False)]
"""As JSON writes it. Everything else is taken as it is: neither `true` nor `"1"` is a number."""

Several = BeforeValidator(one_or_many)

MOST_NAMED = 50
"""Of states or tags in one filter; a task has no more tags either."""

SHORTEST_SEARCH, LONGEST_SEARCH = 3, 200
"""Characters: of fewer than three no index can tell."""


@dataclass(frozen=True)
class Filter:
    """Which tasks: what is none does not matter."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    status: Annotated[
        list[State] | None,
        Field(min_length=1, max_length=MOST_NAMED, description="Repeat it for several: any of them."),
        at_most(MOST_NAMED),
        Several,
    ] = None
    actor: Name | None = None
    provider: Name | None = None
    task_type: Annotated[Label | None, Field(description="The client's own word for the kind of task.")] = None
    subagent_type: Annotated[Name | None, Field(description="Which agent: tasks of the actor `agent` alone.")] = None
    lane: Lane | None = None
    user_id: Annotated[Name | None, Field(description="Whose tasks; a user's key sees its own in any case.")] = None
    tag: Annotated[
        list[Label] | None,
        Field(min_length=1, max_length=MOST_NAMED, description="Repeat it for several: all of them."),
        at_most(MOST_NAMED),
        Several,
    ] = None
    project_id: Label | None = None
    workflow_id: Label | None = None
    workflow_run_id: Label | None = None
    interaction_id: Label | None = None
    parent_task_id: Id | None = None
    provider_job_id: Annotated[Name | None, Field(description="What the provider calls the work.")] = None
    request_id: Annotated[
        Name | None,
        Field(
            description="The request that submitted it: the `X-Request-ID` that was sent, or the one that was answered."
        ),
    ] = None
    error_type: Annotated[
        Name | None, Field(description="The last error's type, for instance `ServiceUnavailable`.")
    ] = None
    fingerprint: Annotated[Fingerprint | None, Field(description="As `/queues/dlq?group_by=error` shows it.")] = None
    created_after: Annotated[Moment | None, Field(description="Created later than this moment, ISO 8601.")] = None
    created_before: Annotated[Moment | None, Field(description="Created earlier than this moment, ISO 8601.")] = None
    updated_after: Annotated[Moment | None, Field(description="Changed later than this moment, ISO 8601.")] = None
    q: Annotated[
        str | None,
        Field(
            min_length=SHORTEST_SEARCH,
            max_length=LONGEST_SEARCH,
            description="Text in the error message or at the beginning of the prompt or content; three characters at "
            "least.",
        ),
    ] = None


FILTERS: Mapping[str, object] = {
    name: hint for name, hint in get_type_hints(Filter).items() if name != "__pydantic_config__"
}
"""Each with its bare type."""


def description_of(name: str) -> str | None:
    hint = get_type_hints(Filter, include_extras=True)[name]
    said = [each.description for each in get_args(hint) if isinstance(each, FieldInfo)]
    return said[0] if said else None

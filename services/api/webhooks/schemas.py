"""The shapes that come in, checked field by field."""

from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema

from windlass.services.api.access.reasons import Reason
from windlass.shared.filters import Id, Label
from windlass.shared.forms import Form, at_most
from windlass.shared.urls import EndpointUrl
from windlass.shared.webhook_states import EVENTS, KINDS

STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)


def _is_known(event: str) -> str:
    if event not in EVENTS and event not in KINDS:
        raise ValueError(f"there is no such event; there are {', '.join(EVENTS)}, and {', '.join(KINDS)}")
    return event


Url = Annotated[
    EndpointUrl, Field(description="Where it is told: with https, unless the address is an allowed private one.")
]
Event = Annotated[
    str,
    AfterValidator(_is_known),
    WithJsonSchema({"type": "string", "enum": [*EVENTS, *KINDS]}),
]
Events = Annotated[
    list[Event],
    at_most(50),
    Field(max_length=50, description="What it is told of, as `task.completed`; `task.*` is all of a kind."),
]
Scope = Annotated[
    Literal["own", "all"],
    Field(description="Its owner's own things, or everybody's: for admins, for whom it is the default."),
]


class Narrowing(Form):
    """Only what is of these, all at once."""

    model_config = STRICT

    project_id: Id | None = None
    workflow_id: Id | None = None
    actor: Label | None = None
    tag: Label | None = None


class NewWebhook(Form):
    """An endpoint to be."""

    model_config = STRICT

    url: Url
    events: Events
    filter: Narrowing = Narrowing()
    scope: Scope | None = None
    description: Label | None = None


class WebhookChange(Form):
    """What is to be another. What waits is sent to the new url, and given up where its event is subscribed no more."""

    model_config = STRICT

    url: Url | None = None
    events: Events | None = None
    filter: Narrowing | None = None
    scope: Scope | None = None
    description: Label | None = None
    reason: Reason | None = None


class Enabling(Form):
    """What becomes of what was held."""

    model_config = STRICT

    replay: Annotated[Literal["none", "held"], Field(description="Whether what was held is sent now, or given up.")] = (
        "held"
    )
    reason: Reason | None = None

"""What the operations on actors answer, and the ways to submit that follow the registry: one for each actor."""

from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from windlass.services.api.actors.documents import example_payload
from windlass.services.api.reference.actor_schemas import shortcut_of
from windlass.services.api.reference.documents.tasks import Document
from windlass.services.api.reference.operation import Answer, Operation
from windlass.services.api.reference.operations.tasks import SUBMIT
from windlass.shared.settings import Settings
from windlass.shared.submission.known import Actors, KnownActor

SHORTCUT = "/api/v1/tasks/{actor}"
ABOUT_A_SHORTCUT = "The payload's fields stand at the top level, beside the task's own."


class ActorVersionDocument(Document):
    """A version that tasks are checked by."""

    version: str
    live_workers: Annotated[int, Field(description="How many run it now.")]
    workers: Annotated[list[str] | None, Field(description="Which; not for users.")]


class ActorSummary(Document):
    """A kind of work."""

    name: Annotated[str, Field(examples=["summarize"])]
    description: str
    built_in: Annotated[bool, Field(description="Whether it comes with Windlass.")]
    default_provider: Annotated[str | None, Field(description="Of tasks that name none.")]
    providers: Annotated[list[str], Field(description="Those that may be named.")]
    timeout_seconds: float
    max_retries: int
    max_age_seconds: float | None
    version: Annotated[str, Field(description="Registered last.")]
    workers: Annotated[int, Field(description="How many run any of its versions now.")]


class ActorList(Document):
    """Every actor, by name."""

    items: list[ActorSummary]


class ActorDocument(ActorSummary):
    """A kind of work, and what it takes."""

    payload_schema: Annotated[dict[str, Any], Field(description="JSON Schema of the payload.")]
    result_schema: Annotated[dict[str, Any] | None, Field(description="JSON Schema of the result, where it is known.")]
    example: Annotated[dict[str, Any], Field(description="A payload of that shape.")]
    throws: Annotated[list[str], Field(description="Errors that are not tried again.")]
    concurrency_key: Annotated[list[str], Field(description="Where in the payload its concurrency key stands.")]
    versions: Annotated[list[ActorVersionDocument], Field(description="What all of these take is accepted.")]


class ForgottenActor(Document):
    """What was removed."""

    name: str
    queues: Annotated[list[str], Field(description="Its queues.")]
    providers: Annotated[list[str], Field(description="Its providers that served nothing else.")]


ACTOR_OPERATIONS: dict[tuple[str, str], Operation] = {
    ("GET", "/api/v1/actors"): Operation("Submit", "List actors", {200: Answer("The actors.", (ActorList,))}),
    ("GET", "/api/v1/actors/{name}"): Operation(
        "Submit", "Read an actor", {200: Answer("The actor.", (ActorDocument,))}, problems=(404,)
    ),
    ("DELETE", "/api/v1/actors/{name}"): Operation(
        "Operate", "Forget an actor", {200: Answer("What was removed.", (ForgottenActor,))}, problems=(403, 404, 409)
    ),
}


def shortcuts(actors: Actors, settings: Settings) -> dict[str, Operation]:
    """By path."""
    return {SHORTCUT.format(actor=name): shortcut(known, settings) for name, known in sorted(actors.items())}


def shortcut(known: KnownActor, settings: Settings) -> Operation:
    needed = {} if known.definition.provider else {"provider": next(iter(known.providers(settings)), "…")}
    return replace(
        SUBMIT,
        summary=f"Submit to {known.name}",
        body=None,
        body_shape=shortcut_of(known.name),
        example={**needed, **example_payload(known.definition)},
    )

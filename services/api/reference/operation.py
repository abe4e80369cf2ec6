"""What can be said about an operation: what it takes, what it answers, how it may fail."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from windlass.shared.filters import FILTERS, description_of

PROBLEMS = {
    400: "The request cannot be read: malformed JSON, a broken position in a stream.",
    401: "No valid key came with the request.",
    403: "The key is valid, but not for this.",
    404: "There is nothing by that id that this key may see.",
    409: "The present state does not allow it.",
    416: "The range begins behind the file's end.",
    500: "The file is missing in the storage.",
    413: "The body is larger than it may be.",
    415: "The body is declared as something else than JSON.",
    422: "A field failed its check; `errors` names it.",
    408: "The body did not arrive in time.",
    429: "Too many failed attempts with wrong keys from this address.",
    503: "The database is away, or a file's storage; `Retry-After` says when to try again.",
}

PARAMETERS = {
    **{name: said for name in FILTERS if (said := description_of(name))},
    "wait": "Hold the answer back until the task has ended, for so many seconds at most (50).",
    "full": "With payload, result, stack traces (admins) and every attempt's error.",
    "cursor": "The `next_cursor` of the page before.",
    "limit": "How many at most.",
    "only": "`state` leaves out output and steps, and thins progress: for lists.",
    "after": "Begin after this `seq`.",
    "Last-Event-ID": "The last event that the client has seen; goes before `after`.",
    "Idempotency-Key": "Makes a repeat harmless for 24 hours: it answers with the task that is there already.",
    "token": "From `POST …/stream-token`, where no header can be sent.",
    "type": "Only events of this type; repeat it for several.",
    "expires": "Of a signed url, as a result holds it: until when it is good.",
    "signature": "Of a signed url, instead of a key.",
    "since": "Since when, ISO 8601; a day ago if left out.",
    "reason": "Why, for the audit log.",
    "group_by": "`error` groups them by what they died of.",
}


@dataclass(frozen=True)
class Answer:
    """A status that is no error, with what comes with it."""

    description: str
    models: tuple[type[BaseModel], ...] = ()
    media_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)

    def described(self, reference_to: Callable[[type[BaseModel]], dict[str, str]]) -> dict[str, Any]:
        document: dict[str, Any] = {"description": self.description}
        if self.headers:
            document["headers"] = {
                name: {"description": text, "schema": {"type": "string"}} for name, text in self.headers.items()
            }
        if self.models:
            schemas = [reference_to(model) for model in self.models]
            document["content"] = {self.media_type: {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}}}
        elif self.media_type != "application/json":
            document["content"] = {self.media_type: {"schema": {"type": "string"}}}
        return document


@dataclass(frozen=True)
class Operation:
    """One method on one path."""

    tag: str
    summary: str
    answers: Mapping[int, Answer]
    problems: tuple[int, ...] = ()
    body: type[BaseModel] | None = None
    body_shape: str | None = None
    """Instead of a model: the name of a shape that is drawn from something else."""
    raw_body: str | None = None
    """Instead of JSON: the type of what is sent as it is."""
    body_required: bool = True
    example: Any = None
    needs_a_key: bool = True

    @property
    def takes_a_body(self) -> bool:
        return self.body is not None or self.body_shape is not None

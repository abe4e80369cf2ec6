"""From a request's body to a task that can be stored, or to the problem that names what is wrong with it."""

import hashlib
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec
from litestar import Request
from pydantic import ValidationError

from windlass.services.api.access.auth import Caller
from windlass.services.api.http.bodies import field_problem
from windlass.services.api.http.errors import invalid_fields, problem_of
from windlass.services.api.tasks.schemas import NewTask
from windlass.shared import tracing
from windlass.shared.actors.task_options import OPTIONS
from windlass.shared.scrubbing import withhold_label
from windlass.shared.settings import Settings
from windlass.shared.store.tasks import Submission
from windlass.shared.submission.known import Actors
from windlass.shared.submission.refusal import Refused, escape
from windlass.shared.submission.rules import submission_of

MOST_PER_BATCH = 1000

_canonical = msgspec.json.Encoder(order="sorted")


def batch_of(body: Any) -> list[Any]:
    """The tasks of a batch, not yet looked at."""
    wanted = body.get("tasks") if isinstance(body, dict) else None
    for name in body if isinstance(body, dict) else ():
        if name != "tasks":
            detail = "there is no such field; did you mean `tasks`?"
            raise field_problem(f"/{escape(name)}", "invalid-batch", detail)
    if not isinstance(wanted, list) or not 0 < len(wanted) <= MOST_PER_BATCH:
        raise field_problem("/tasks", "invalid-batch", f"a batch is a list of 1 to {MOST_PER_BATCH} tasks")
    return wanted


def accept(
    body: Any,
    caller: Caller,
    settings: Settings,
    actors: Actors,
    *,
    below: str = "",
    shortcut_for: str | None = None,
) -> Submission:
    """A task ready to be stored, or a problem that names the field; `below` is where in the body the task stands."""
    wanted = read(body, below, shortcut_for)
    among, trace = shortcut_for is not None, tracing.traceparent()
    try:
        return submission_of(wanted, caller, settings, actors, below=below, among_options=among, traceparent=trace)
    except Refused as refused:
        raise problem_of(refused) from refused


def read(body: Any, below: str = "", shortcut_for: str | None = None) -> NewTask:
    if shortcut_for is not None and isinstance(body, dict):
        options = {name: value for name, value in body.items() if name in OPTIONS}
        payload = {name: value for name, value in body.items() if name not in OPTIONS}
        body = {"actor": shortcut_for, "payload": payload, **options}
    try:
        return NewTask.model_validate(body)
    except ValidationError as error:
        raise invalid_fields(error, "invalid-task", NewTask, below=below) from error


def within(request: Request[Any, Any, Any], submissions: Sequence[Submission]) -> list[Submission]:
    """So that they are found by their request. What the client calls it is stored with each; what we call it is the
    first one's own id, which costs nothing."""
    sent: str | None = request.scope["sent_request_id"]  # type: ignore[typeddict-item]
    if sent is not None:
        return [msgspec.structs.replace(each, request_id=sent) for each in submissions]
    made = UUID(request.scope["request_id"])  # type: ignore[typeddict-item]
    return [msgspec.structs.replace(submissions[0], task_id=made), *submissions[1:]]


def check_idempotency_key(key: str | None) -> None:
    if key is not None and not (0 < len(key) <= 255 and all("!" <= character <= "~" for character in key)):
        detail = "an Idempotency-Key has 1 to 255 visible ASCII characters"
        raise field_problem("/Idempotency-Key", "invalid-idempotency-key", detail)
    if key is not None and withhold_label(key) != key:
        detail = "an Idempotency-Key is stored, and this one holds a key or credentials; take a random one"
        raise field_problem("/Idempotency-Key", "invalid-idempotency-key", detail)


def under_idempotency_key(
    key: str, submissions: Sequence[Submission], requests: Sequence[NewTask], settings: Settings, actors: Actors
) -> list[Submission]:
    """The first task has the key itself, the others of a batch one made from it that no client can send. All have the
    whole request's hash, in which neither order nor white space nor a default written out makes a difference."""
    canonical = _canonical.encode([_without_defaults(each, settings, actors) for each in requests])
    body_hash = hashlib.sha256(canonical).hexdigest()
    ttl = settings.defaults.idempotency_ttl_seconds
    return [
        msgspec.structs.replace(
            each,
            idempotency_key=f"{key} {number}" if number else key,
            idempotency_ttl_seconds=ttl,
            body_hash=body_hash,
        )
        for number, each in enumerate(submissions)
    ]


def _without_defaults(wanted: NewTask, settings: Settings, actors: Actors) -> dict[str, Any]:
    configured = {
        "max_retries": actors[wanted.actor].terms(settings).max_retries,
        "dedupe_ttl_seconds": settings.defaults.dedupe_ttl_seconds,
    }
    said = wanted.model_dump(mode="json", exclude_defaults=True)
    return {name: value for name, value in said.items() if name not in configured or value != configured[name]}

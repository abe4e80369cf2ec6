"""From a request's body to a task that can be stored: everything that can be checked is checked here."""

from typing import Any

from pydantic import ValidationError
from uuid_utils.compat import uuid7

from services.api.auth import Caller
from services.api.errors import Problem, escape, invalid_fields
from services.api.schemas import NewTask
from shared.payloads import DEFAULT_PROVIDER, PAYLOADS, TIMEOUT_SECONDS, Payload
from shared.settings import Settings
from shared.store.tasks import Submission

DEEPEST = 64
AS_THEY_ARE = {
    "task_type", "priority", "max_retries", "max_age_seconds", "delay_seconds", "tags", "project_id", "workflow_id",
    "parent_task_id", "depends_on",
}  # fmt: skip


def accept(body: Any, caller: Caller, settings: Settings, *, below: str = "") -> Submission:
    """A task ready to be stored, or a problem that names the field; `below` is where in the body the task stands."""
    refuse_unstorable(body, below)
    try:
        wanted = NewTask.model_validate(body)
    except ValidationError as error:
        raise invalid_fields(error, "invalid-task", below=below) from error
    if wanted.user_id is not None and not caller.is_admin:
        raise field_problem(f"{below}/user_id", "forbidden", "only an admin submits for somebody else", status=403)
    provider = choose_provider(wanted, settings, below)
    payload = check_payload(wanted, below)
    refuse_faults(payload, caller, settings, below)
    return Submission(
        task_id=uuid7(),
        actor=wanted.actor,
        provider=provider,
        payload=wanted.payload,
        user_id=wanted.user_id or caller.user_id,
        timeout_seconds=wanted.timeout_seconds or TIMEOUT_SECONDS[wanted.actor],
        run_at=wanted.run_at.isoformat() if wanted.run_at else None,
        **wanted.model_dump(include=AS_THEY_ARE),
    )


def refuse_unstorable(value: Any, pointer: str, depth: int = 0) -> None:
    """Postgres can store no NUL, neither in a text nor in JSON; and nobody means to nest that deep."""
    if depth > DEEPEST:
        raise field_problem(pointer, "nested-too-deep", f"JSON may be nested {DEEPEST} levels deep")
    if isinstance(value, str) and "\0" in value:
        raise field_problem(pointer, "nul-character", "a string must not contain the character NUL")
    if isinstance(value, dict):
        for key, below in value.items():
            refuse_unstorable(key, pointer, depth)
            refuse_unstorable(below, f"{pointer}/{escape(key)}", depth + 1)
    if isinstance(value, list):
        for number, below in enumerate(value):
            refuse_unstorable(below, f"{pointer}/{number}", depth + 1)


def choose_provider(wanted: NewTask, settings: Settings, below: str) -> str:
    if wanted.actor not in PAYLOADS:
        known = ", ".join(sorted(PAYLOADS))
        raise field_problem(f"{below}/actor", "unknown-actor", f"no actor is called {wanted.actor}; known: {known}")
    provider = wanted.provider or DEFAULT_PROVIDER[wanted.actor]
    configured = settings.providers.get(provider)
    if configured is None or configured.actor != wanted.actor:
        detail = f"no provider {provider} does {wanted.actor} tasks"
        raise field_problem(f"{below}/provider", "unknown-provider", detail)
    return provider


def check_payload(wanted: NewTask, below: str) -> Payload:
    try:
        return PAYLOADS[wanted.actor].model_validate(wanted.payload)
    except ValidationError as error:
        raise invalid_fields(error, "invalid-payload", below=f"{below}/payload") from error


def refuse_faults(payload: Payload, caller: Caller, settings: Settings, below: str) -> None:
    """A probe that harms its worker is for drills only."""
    outcome = getattr(payload, "outcome", None)
    if outcome in {"crash", "hang"} and not (caller.is_admin and settings.probe_faults):
        detail = f"`{outcome}` needs an admin and WINDLASS_PROBE_FAULTS=1"
        raise field_problem(f"{below}/payload/outcome", "forbidden", detail, status=403)


def field_problem(pointer: str, code: str, detail: str, *, status: int = 422) -> Problem:
    return Problem(status, code, detail, errors=[{"pointer": pointer, "detail": detail}])

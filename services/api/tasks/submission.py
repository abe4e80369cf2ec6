"""From a request's body to a task that can be stored: everything that can be checked is checked here."""

import hashlib
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from pydantic import ValidationError
from uuid_utils.compat import uuid7

from windlass.services.api.access.auth import Caller
from windlass.services.api.actors.registry import Actors, KnownActor
from windlass.services.api.http.bodies import field_problem
from windlass.services.api.http.errors import escape, invalid_fields, not_as_they_should_be
from windlass.services.api.tasks.checks import CHECKS
from windlass.services.api.tasks.checks.asking import Asking, Gives
from windlass.services.api.tasks.schemas import NewTask
from windlass.shared import tracing
from windlass.shared.concerns import LEVEL_OF_A_KEY, Concern
from windlass.shared.concurrency_keys import LONGEST_KEY, key_of
from windlass.shared.retry_delays import stored_delays
from windlass.shared.scrubbing import withhold, withhold_label
from windlass.shared.settings import Settings
from windlass.shared.store.tasks import Submission
from windlass.shared.wording import meant

AS_THEY_ARE = {
    "task_type", "priority", "delay_seconds", "tags", "project_id", "workflow_id", "parent_task_id",
    "depends_on", "dedupe_key",
}  # fmt: skip
"""Only what the client has said is handed on: a default written out would be read again by Postgres."""

OPTIONS = NewTask.model_fields.keys() - {"actor", "payload"}
"""What a shortcut takes for the task's own; everything else at its top level is payload."""

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
    if wanted.user_id is not None and not caller.is_admin:
        raise field_problem(f"{below}/user_id", "forbidden", "only an admin submits for somebody else", status=403)
    if wanted.webhook_url is not None:
        detail = "webhooks are not built yet: leave webhook_url out and follow the task's stream, or use ?wait="
        raise field_problem(f"{below}/webhook_url", "not-supported-yet", detail)
    known = find_actor(wanted.actor, actors, below)
    provider = choose_provider(wanted, known, settings, below)
    below_payload = f"{below}/payload" if shortcut_for is None else below
    check_payload(wanted, known, settings, below_payload, () if shortcut_for is None else OPTIONS)
    check = CHECKS.get(wanted.actor)
    given: Gives = {}
    if check is not None:
        given = check(Asking(wanted.payload, provider, caller, settings, below_payload, wanted.timeout_seconds))
    stored_payload = withhold(wanted.payload)
    terms = known.terms(settings)
    said = {name: getattr(wanted, name) for name in AS_THEY_ARE & wanted.model_fields_set}
    if terms.concurrency_key:
        said |= keyed(terms.concurrency_key, stored_payload, below_payload)
    return Submission(
        task_id=uuid7(),
        actor=wanted.actor,
        provider=provider,
        payload=stored_payload,
        user_id=wanted.user_id or caller.user_id,
        timeout_seconds=given.pop("timeout_seconds", None) or wanted.timeout_seconds or terms.timeout_seconds,
        max_retries=terms.max_retries if wanted.max_retries is None else wanted.max_retries,
        max_age_seconds=wanted.max_age_seconds or terms.max_age_seconds,
        dedupe_ttl_seconds=wanted.dedupe_ttl_seconds or settings.defaults.dedupe_ttl_seconds,
        retry_delays=None if wanted.retry_delays is None else stored_delays(wanted.retry_delays),
        run_at=time_to_come(wanted.run_at),
        reach=None if caller.is_admin else caller.user_id,
        traceparent=tracing.traceparent(),
        **said,
        **given,
    )


def read(body: Any, below: str = "", shortcut_for: str | None = None) -> NewTask:
    if shortcut_for is not None and isinstance(body, dict):
        options = {name: value for name, value in body.items() if name in OPTIONS}
        payload = {name: value for name, value in body.items() if name not in OPTIONS}
        body = {"actor": shortcut_for, "payload": payload, **options}
    try:
        return NewTask.model_validate(body)
    except ValidationError as error:
        raise invalid_fields(error, "invalid-task", NewTask, below=below) from error


def find_actor(name: str, actors: Actors, below: str) -> KnownActor:
    known = actors.get(name)
    if known is None:
        detail = f"no actor is called {name}; {meant(name, actors)}"
        raise field_problem(f"{below}/actor", "unknown-actor", detail)
    return known


def choose_provider(wanted: NewTask, known: KnownActor, settings: Settings, below: str) -> str:
    provider = wanted.provider or known.definition.provider
    if provider is None or not known.is_served_by(provider, settings):
        able = known.providers(settings)
        choice = f"choose one of: {', '.join(able)}" if able else f"none is configured for {wanted.actor}"
        if provider is None:
            detail = f"{wanted.actor} tasks have no default provider; {choice}"
            raise field_problem(f"{below}/provider", "provider-required", detail)
        configured = settings.providers.get(provider)
        serves = f"; {provider} serves {', '.join(configured.actors)}" if configured else ""
        likely = meant(provider, able) if able and configured is None else choice
        detail = f"no provider {provider} does {wanted.actor} tasks{serves}; {likely}"
        raise field_problem(f"{below}/provider", "unknown-provider", detail)
    return provider


def check_payload(
    wanted: NewTask, known: KnownActor, settings: Settings, below: str, beside: Collection[str] = ()
) -> None:
    """`beside` are the task's own fields, where the payload's stand among them."""
    size = len(msgspec.json.encode(wanted.payload))
    if size > settings.largest_payload_bytes:
        detail = f"a payload may have {settings.largest_payload_bytes:,} bytes as JSON; this one has {size:,}"
        raise field_problem(below, "payload-too-large", detail, status=413)
    faults = known.faults_of(wanted.payload, beside)
    if faults:
        errors = [
            {"pointer": below + "".join(f"/{escape(part)}" for part in fault.place), "detail": fault.detail}
            for fault in faults
        ]
        raise not_as_they_should_be("invalid-payload", errors)


def time_to_come(run_at: datetime | None) -> str | None:
    """A time that is past means now: written down as it is, it would go before everybody who waits."""
    return run_at.isoformat() if run_at is not None and run_at > datetime.now(UTC) else None


def keyed(pointers: Sequence[str], payload: dict[str, Any], below: str) -> dict[str, Any]:
    """The task's concurrency key, if it has one, and what its moves must know for it."""
    key = key_of(payload, pointers)
    if key is None:
        return {}
    if len(key) > LONGEST_KEY:
        detail = (
            f"it is the task's concurrency key, which has {LONGEST_KEY} characters at most; this one has {len(key)}"
        )
        raise field_problem(f"{below}{pointers[0]}", "concurrency-key-too-long", detail)
    return {"concurrency_key": key, "concerns": Concern.KEY.value, "level": LEVEL_OF_A_KEY}


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

"""From a request's body to a task that can be stored: everything that can be checked is checked here."""

import hashlib
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from pydantic import ValidationError
from uuid_utils.compat import uuid7

from windlass.services.api.access.auth import Caller
from windlass.services.api.http.bodies import field_problem
from windlass.services.api.http.errors import escape, invalid_fields
from windlass.services.api.tasks.provider_actions import refuse_what_it_does_not_take
from windlass.services.api.tasks.schemas import NewTask
from windlass.shared import tracing
from windlass.shared.actors.payloads import (
    DEFAULT_PROVIDER,
    PAYLOADS,
    AgentPayload,
    MediaPayload,
    Payload,
    ProbePayload,
)
from windlass.shared.concerns import LEVEL_OF_A_KEY, Concern
from windlass.shared.concurrency_keys import LONGEST_KEY, key_of
from windlass.shared.retry_delays import stored_delays
from windlass.shared.scrubbing import withhold, withhold_label
from windlass.shared.settings import Settings
from windlass.shared.store.tasks import Submission
from windlass.shared.wording import did_you_mean

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
    body: Any, caller: Caller, settings: Settings, *, below: str = "", shortcut_for: str | None = None
) -> Submission:
    """A task ready to be stored, or a problem that names the field; `below` is where in the body the task stands."""
    wanted = read(body, below, shortcut_for)
    if wanted.user_id is not None and not caller.is_admin:
        raise field_problem(f"{below}/user_id", "forbidden", "only an admin submits for somebody else", status=403)
    if wanted.webhook_url is not None:
        detail = "webhooks are not built yet: leave webhook_url out and follow the task's stream, or use ?wait="
        raise field_problem(f"{below}/webhook_url", "not-supported-yet", detail)
    provider = choose_provider(wanted, settings, below)
    below_payload = f"{below}/payload" if shortcut_for is None else below
    payload = check_payload(wanted, settings, below_payload, () if shortcut_for is None else OPTIONS)
    refuse_faults(payload, caller, settings, below_payload)
    refuse_unknown_agent(payload, settings, below_payload)
    if isinstance(payload, MediaPayload):
        refuse_what_it_does_not_take(payload, provider, settings, below_payload)
    stored_payload = withhold(wanted.payload)
    return Submission(
        task_id=uuid7(),
        actor=wanted.actor,
        provider=provider,
        payload=stored_payload,
        user_id=wanted.user_id or caller.user_id,
        timeout_seconds=timeout_of(wanted, payload, settings),
        max_retries=settings.max_retries_of(wanted.actor) if wanted.max_retries is None else wanted.max_retries,
        max_age_seconds=wanted.max_age_seconds or settings.max_age_seconds_of(wanted.actor),
        dedupe_ttl_seconds=wanted.dedupe_ttl_seconds or settings.defaults.dedupe_ttl_seconds,
        retry_delays=None if wanted.retry_delays is None else stored_delays(wanted.retry_delays),
        run_at=time_to_come(wanted.run_at),
        reach=None if caller.is_admin else caller.user_id,
        traceparent=tracing.traceparent(),
        **{name: getattr(wanted, name) for name in AS_THEY_ARE & wanted.model_fields_set},
        **(run_of(payload) if isinstance(payload, MediaPayload) else {}),
        **keyed(wanted.actor, stored_payload, settings, below_payload),
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


def choose_provider(wanted: NewTask, settings: Settings, below: str) -> str:
    if wanted.actor not in PAYLOADS:
        detail = f"no actor is called {wanted.actor}; {meant(wanted.actor, PAYLOADS)}"
        raise field_problem(f"{below}/actor", "unknown-actor", detail)
    provider = wanted.provider or DEFAULT_PROVIDER.get(wanted.actor)
    configured = settings.providers.get(provider) if provider else None
    if provider is None or configured is None or wanted.actor not in configured.actors:
        able = sorted(name for name, each in settings.providers.items() if wanted.actor in each.actors)
        choice = f"choose one of: {', '.join(able)}" if able else f"none is configured for {wanted.actor}"
        if provider is None:
            detail = f"{wanted.actor} tasks have no default provider; {choice}"
            raise field_problem(f"{below}/provider", "provider-required", detail)
        serves = f"; {provider} serves {', '.join(configured.actors)}" if configured else ""
        likely = meant(provider, able) if able and configured is None else choice
        detail = f"no provider {provider} does {wanted.actor} tasks{serves}; {likely}"
        raise field_problem(f"{below}/provider", "unknown-provider", detail)
    return provider


def check_payload(wanted: NewTask, settings: Settings, below: str, beside: Collection[str] = ()) -> Payload:
    """`beside` are the task's own fields, where the payload's stand among them."""
    size = len(msgspec.json.encode(wanted.payload))
    if size > settings.largest_payload_bytes:
        detail = f"a payload may have {settings.largest_payload_bytes:,} bytes as JSON; this one has {size:,}"
        raise field_problem(below, "payload-too-large", detail, status=413)
    model = PAYLOADS[wanted.actor]
    try:
        return model.model_validate(wanted.payload)
    except ValidationError as error:
        raise invalid_fields(error, "invalid-payload", model, below=below, beside=beside) from error


def refuse_faults(payload: Payload, caller: Caller, settings: Settings, below: str) -> None:
    """A probe that harms its worker is for drills only, and one that pauses its provider for all is an admin's."""
    if not isinstance(payload, ProbePayload):
        return
    if payload.outcome in {"crash", "hang"} and not (caller.is_admin and settings.probe_faults):
        detail = "`crash` and `hang` need an admin and WINDLASS_PROBE_FAULTS=1"
        raise field_problem(f"{below}/outcome", "forbidden", detail, status=403)
    if payload.error_type == "RateLimited" and not caller.is_admin:
        detail = "`RateLimited` pauses the provider for everybody, and needs an admin"
        raise field_problem(f"{below}/error_type", "forbidden", detail, status=403)


def meant(word: str, known: Collection[str]) -> str:
    """The likeliest, and all that there are."""
    names = f"there are {', '.join(sorted(known))}"
    likely = did_you_mean(word, known)
    return names if likely == names else f"{likely} {names}"


def refuse_unknown_agent(payload: Payload, settings: Settings, below: str) -> None:
    if isinstance(payload, AgentPayload) and payload.subagent_type not in settings.agents:
        detail = f"no agent is called {payload.subagent_type}; {meant(payload.subagent_type, settings.agents)}"
        raise field_problem(f"{below}/subagent_type", "unknown-agent", detail)


def run_of(payload: MediaPayload) -> dict[str, Any]:
    """What lists find media by stands in columns of its own as well."""
    named = {"workflow_run_id": payload.workflow_run_id, "interaction_id": payload.interaction_id}
    return {name: withhold_label(value) for name, value in named.items() if value is not None}


def time_to_come(run_at: datetime | None) -> str | None:
    """A time that is past means now: written down as it is, it would go before everybody who waits."""
    return run_at.isoformat() if run_at is not None and run_at > datetime.now(UTC) else None


def keyed(actor: str, payload: dict[str, Any], settings: Settings, below: str) -> dict[str, Any]:
    """The task's concurrency key, if it has one, and what its moves must know for it."""
    concurrency = settings.actors[actor].concurrency
    key = None if concurrency is None else key_of(payload, concurrency.key)
    if concurrency is None or key is None:
        return {}
    if len(key) > LONGEST_KEY:
        detail = (
            f"it is the task's concurrency key, which has {LONGEST_KEY} characters at most; this one has {len(key)}"
        )
        raise field_problem(f"{below}{concurrency.key[0]}", "concurrency-key-too-long", detail)
    return {"concurrency_key": key, "concerns": Concern.KEY.value, "level": LEVEL_OF_A_KEY}


def timeout_of(wanted: NewTask, payload: Payload, settings: Settings) -> float:
    """What an operator has set for an agent is what its tasks get, and the most that a client may ask for. An attempt
    that follows a timeout gets more time all the same: else it would only time out again."""
    most = settings.agents[payload.subagent_type].timeout_seconds if isinstance(payload, AgentPayload) else None
    if most is None:
        return wanted.timeout_seconds or settings.actors[wanted.actor].timeout_seconds
    return min(wanted.timeout_seconds or most, most)


def check_idempotency_key(key: str | None) -> None:
    if key is not None and not (0 < len(key) <= 255 and all("!" <= character <= "~" for character in key)):
        detail = "an Idempotency-Key has 1 to 255 visible ASCII characters"
        raise field_problem("/Idempotency-Key", "invalid-idempotency-key", detail)
    if key is not None and withhold_label(key) != key:
        detail = "an Idempotency-Key is stored, and this one holds a key or credentials; take a random one"
        raise field_problem("/Idempotency-Key", "invalid-idempotency-key", detail)


def under_idempotency_key(
    key: str, submissions: Sequence[Submission], requests: Sequence[NewTask], settings: Settings
) -> list[Submission]:
    """The first task has the key itself, the others of a batch one made from it that no client can send. All have the
    whole request's hash, in which neither order nor white space nor a default written out makes a difference."""
    canonical = _canonical.encode([_without_defaults(each, settings) for each in requests])
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


def _without_defaults(wanted: NewTask, settings: Settings) -> dict[str, Any]:
    configured = {
        "max_retries": settings.max_retries_of(wanted.actor),
        "dedupe_ttl_seconds": settings.defaults.dedupe_ttl_seconds,
    }
    said = wanted.model_dump(mode="json", exclude_defaults=True)
    return {name: value for name, value in said.items() if name not in configured or value != configured[name]}

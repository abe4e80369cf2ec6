"""From what an actor says to a child that can be stored: checked as the api checks what comes over REST.

The worker has no caller whose role it could look at: what REST keeps for admins is refused.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import jsonschema_rs
import msgspec
from pydantic import ValidationError
from uuid_utils.compat import uuid7

from windlass.shared.actors.built_in import built_in
from windlass.shared.actors.definition import Definition
from windlass.shared.actors.new_task import NewTask
from windlass.shared.actors.payloads import (
    PAYLOADS,
    AgentPayload,
    MediaPayload,
    Payload,
    ProbePayload,
)
from windlass.shared.actors.terms import terms_of
from windlass.shared.concerns import LEVEL_OF_A_KEY, Concern
from windlass.shared.concurrency_keys import LONGEST_KEY, key_of
from windlass.shared.errors import InvalidInput
from windlass.shared.retry_delays import stored_delays
from windlass.shared.scrubbing import withhold, withhold_label
from windlass.shared.settings import Settings
from windlass.shared.store.tasks import Submission
from windlass.shared.toml_tables import DEFAULT_ACTORS, ActorSettings
from windlass.shared.wording import did_you_mean, in_words

NOT_FOR_CHILDREN = {
    "user_id": "a child is its parent's user's",
    "parent_task_id": "a child's parent is the task that makes it",
    "dedupe_key": "a child is made once by itself",
    "dedupe_ttl_seconds": "a child is made once by itself",
    "webhook_url": "webhooks are not built yet",
}
OPTIONS = NewTask.model_fields.keys() - {"actor", "payload"}
AS_THEY_ARE = {"task_type", "priority", "delay_seconds", "tags", "project_id", "workflow_id", "depends_on"}


@dataclass(frozen=True)
class Terms:
    """What an actor's tasks get that do not say otherwise."""

    timeout_seconds: float
    max_age_seconds: float | None
    max_retries: int
    pointers: Sequence[str]
    """To its concurrency key."""
    run: dict[str, Any] = field(default_factory=dict)


def name_of(actor: Any) -> str:
    """An actor's name, or whatever has one."""
    name = actor if isinstance(actor, str) else getattr(actor, "name", None)
    if not isinstance(name, str):
        raise InvalidInput(f"`submit` takes an actor or its name, and not {actor!r}")
    return name


def submission_of(
    actor: str,
    definition: Definition | None,
    payload: Mapping[str, Any] | None,
    options: dict[str, Any],
    settings: Settings,
) -> Submission:
    """Raises InvalidInput with what is wrong and where. `definition` is that of a user's own actor."""
    wanted = _read(actor, payload, options)
    if actor not in PAYLOADS and definition is None:
        raise InvalidInput(f"no actor is called {actor}; {did_you_mean(actor, {*PAYLOADS, *settings.actors})}")
    size = len(msgspec.json.encode(wanted.payload))
    if size > settings.largest_payload_bytes:
        message = f"a payload may have {settings.largest_payload_bytes:,} bytes as JSON; the child's has {size:,}"
        raise InvalidInput(message, size_bytes=size)
    terms = _of_built_in(wanted, settings) if definition is None else _of_own(wanted, definition, settings)
    stored_payload = withhold(wanted.payload)
    run_at = wanted.run_at if wanted.run_at and wanted.run_at > datetime.now(UTC) else None
    return Submission(
        task_id=uuid7(),
        actor=actor,
        provider=_provider(wanted, definition, settings),
        payload=stored_payload,
        user_id="",  # filled in from the parent's row
        timeout_seconds=terms.timeout_seconds,
        max_age_seconds=wanted.max_age_seconds or terms.max_age_seconds,
        max_retries=terms.max_retries if wanted.max_retries is None else wanted.max_retries,
        retry_delays=None if wanted.retry_delays is None else stored_delays(wanted.retry_delays),
        run_at=None if run_at is None else run_at.isoformat(),
        **{name: getattr(wanted, name) for name in AS_THEY_ARE & wanted.model_fields_set},
        **terms.run,
        **_keyed(terms.pointers, stored_payload),
    )


def _read(actor: str, payload: Mapping[str, Any] | None, options: dict[str, Any]) -> NewTask:
    for name in options.keys() & NOT_FOR_CHILDREN.keys():
        raise InvalidInput(f"`submit` takes no {name}: {NOT_FOR_CHILDREN[name]}")
    fields = {name: value for name, value in options.items() if name not in OPTIONS}
    if payload is not None and fields:
        unknown = min(fields)
        raise InvalidInput(f"there is no option {unknown}; {did_you_mean(unknown, OPTIONS)}")
    own = {name: _as_json_has_it(value) for name, value in options.items() if name in OPTIONS}
    try:
        return NewTask.model_validate(
            {"actor": actor, "payload": _as_json_has_it(dict(fields if payload is None else payload)), **own}
        )
    except ValidationError as error:
        raise _refusal(actor, error) from error


def _as_json_has_it(value: Any) -> Any:
    """A uuid or a time as text, as a client would send it."""
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise InvalidInput(f"what a child is given must be JSON: {error}") from error


def _refusal(actor: str, error: ValidationError) -> InvalidInput:
    faults = [
        {"pointer": "".join(f"/{part}" for part in each["loc"]), "detail": in_words(each)} for each in error.errors()
    ]
    return _refused(actor, faults)


def _refused(actor: str, faults: Collection[dict[str, str]]) -> InvalidInput:
    said = "; ".join(f"{each['pointer'] or '/'}: {each['detail']}" for each in faults)
    return InvalidInput(f"a child of {actor} is not as it should be: {said}", errors=list(faults))


def _provider(wanted: NewTask, definition: Definition | None, settings: Settings) -> str:
    actor = wanted.actor
    usual = DEFAULT_ACTORS[actor].get("provider") if definition is None else definition.provider or actor
    provider = wanted.provider or usual
    able = sorted(name for name, each in settings.providers.items() if actor in each.actors)
    if provider is None:
        raise InvalidInput(f"{actor} tasks have no default provider; choose one of: {', '.join(able)}")
    configured = settings.providers.get(provider)
    if configured is None and definition is not None and provider == usual:
        return provider  # it has no table here, and need not have one
    if configured is None or actor not in configured.actors:
        raise InvalidInput(f"no provider {provider} does {actor} tasks; {did_you_mean(provider, able)}")
    return provider


def _of_built_in(wanted: NewTask, settings: Settings) -> Terms:
    try:
        payload: Payload = PAYLOADS[wanted.actor].model_validate(wanted.payload)
    except ValidationError as error:
        raise _refusal(wanted.actor, error) from error
    table = settings.actors[wanted.actor]
    timeout = wanted.timeout_seconds or table.timeout_seconds
    run: dict[str, Any] = {}
    if isinstance(payload, ProbePayload):
        _refuse_faults(payload)
    elif isinstance(payload, AgentPayload):
        if payload.subagent_type not in settings.agents:
            likely = did_you_mean(payload.subagent_type, settings.agents)
            raise InvalidInput(f"no agent is called {payload.subagent_type}; {likely}")
        most = settings.agents[payload.subagent_type].timeout_seconds
        timeout = timeout if most is None else min(wanted.timeout_seconds or most, most)
    elif isinstance(payload, MediaPayload):
        named = {"workflow_run_id": payload.workflow_run_id, "interaction_id": payload.interaction_id}
        run = {name: withhold_label(value) for name, value in named.items() if value is not None}
    terms = terms_of(built_in()[wanted.actor], settings)
    return Terms(timeout, terms.max_age_seconds, terms.max_retries, terms.concurrency_key, run)


def _refuse_faults(payload: ProbePayload) -> None:
    if payload.outcome in {"crash", "hang"} or payload.error_type == "RateLimited":
        raise InvalidInput("a probe that crashes, hangs or is rate limited is an admin's, and nobody's child")


def _of_own(wanted: NewTask, definition: Definition, settings: Settings) -> Terms:
    """By the rows' own word, with the table's before it where this worker has one."""
    validator = jsonschema_rs.Draft202012Validator(definition.payload_schema, validate_formats=True, offline=True)
    faults = [
        {"pointer": "".join(f"/{part}" for part in each.instance_path), "detail": each.message}
        for each in validator.iter_errors(wanted.payload)
    ]
    if faults:
        raise _refused(wanted.actor, faults)
    table, defaults = settings.actors.get(wanted.actor, ActorSettings()), settings.defaults
    ages = [each for each in (table.max_age_seconds, definition.max_age_seconds) if each is not None]
    retries = [each for each in (table.max_retries, definition.max_retries) if each is not None]
    return Terms(
        wanted.timeout_seconds or definition.timeout_seconds,
        (ages[0] if ages else defaults.max_age_seconds) or None,
        retries[0] if retries else defaults.max_retries,
        definition.concurrency_key,
    )


def _keyed(pointers: Sequence[str], payload: dict[str, Any]) -> dict[str, Any]:
    key = key_of(payload, pointers) if pointers else None
    if key is None:
        return {}
    if len(key) > LONGEST_KEY:
        raise InvalidInput(f"a concurrency key has {LONGEST_KEY} characters at most; the child's has {len(key)}")
    return {"concurrency_key": key, "concerns": Concern.KEY.value, "level": LEVEL_OF_A_KEY}

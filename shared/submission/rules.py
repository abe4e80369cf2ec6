"""From a task that somebody wants to one that can be stored: everything that can be checked without asking anybody."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from uuid_utils.compat import uuid7

from windlass.shared.actors.new_task import Dependency, NewTask
from windlass.shared.actors.task_options import OPTIONS
from windlass.shared.actors.terms import Terms
from windlass.shared.concerns import Concern
from windlass.shared.concurrency_keys import LONGEST_KEY, key_of, parts_of
from windlass.shared.providers.http.addresses import Allowances, fault_of_literal
from windlass.shared.references import Reference, holds_one_at, is_at_or_under
from windlass.shared.retry_delays import stored_delays
from windlass.shared.scrubbing import withhold
from windlass.shared.settings import Settings
from windlass.shared.store.tasks import Submission
from windlass.shared.submission.checks import CHECKS
from windlass.shared.submission.checks.asking import Asker, Asking, Gives
from windlass.shared.submission.known import Actors, KnownActor
from windlass.shared.submission.referring import (
    Refers,
    find_references,
    refuse_a_key_by_reference,
    without_references,
)
from windlass.shared.submission.refusal import Refused, Wrong, pointer_to, refusal
from windlass.shared.suggestions import meant

AS_THEY_ARE = {
    "task_type", "priority", "delay_seconds", "tags", "project_id", "workflow_id", "parent_task_id",
    "dedupe_key",
}  # fmt: skip
"""Only what somebody has said is handed on: a default written out would be read again by Postgres."""


_encode = msgspec.json.Encoder().encode


def submission_of(
    wanted: NewTask,
    asker: Asker,
    settings: Settings,
    actors: Actors,
    *,
    below: str = "",
    among_options: bool = False,
    traceparent: str | None = None,
    refers: Refers | None = None,
) -> Submission:
    """Raises Refused with what is wrong, and where: `below` is where the task was said, and its payload in there, or
    among the task's own fields. What its payload may refer to are the tasks that it depends on, unless `refers` says
    it."""
    if wanted.user_id is not None and not asker.is_admin:
        raise refusal(f"{below}/user_id", "forbidden", "only an admin submits for somebody else")
    actor = wanted.actor
    known = actors.get(actor)
    if known is None:
        detail = f"no actor is called {actor}; {meant(actor, actors)}"
        raise refusal(f"{below}/actor", "unknown-actor", detail)
    provider = choose_provider(wanted, known, settings, below)
    below_payload = below if among_options else f"{below}/payload"
    edges = edges_of(wanted)
    if refers is None and edges:
        refers = Refers(frozenset(str(each) for each in edges["depends_on"]))
    references = find_references(wanted.payload, refers, actor, below_payload) if refers is not None else ()
    check_payload(
        wanted.payload, known, settings, below_payload, OPTIONS if among_options else (), references=references
    )
    check = CHECKS.get(actor)
    given: Gives = {}
    if check is not None:
        payload = without_references(wanted.payload, references) if references else wanted.payload
        to_come = "source_image" in wanted.payload and "source_image" not in payload
        given = check(Asking(payload, provider, asker, settings, below_payload, wanted.timeout_seconds, to_come))
    stored_payload = withhold(wanted.payload)
    terms = known.terms(settings)
    said = {name: getattr(wanted, name) for name in AS_THEY_ARE & wanted.model_fields_set}
    if terms.concurrency_key:
        of_an_element = refers is not None and refers.of_an_element
        refuse_a_key_by_reference(terms.concurrency_key, references, below_payload, of_an_element=of_an_element)
        said |= keyed(terms.concurrency_key, stored_payload, references, known, below_payload)
    said |= edges
    if references:
        said["concerns"] = said.get("concerns", 0) | Concern.REFERENCES.value
    if wanted.approval is not None:
        said["approval"] = wanted.approval.model_dump(exclude_none=True)
    said |= told_to(wanted.webhook_url, said, settings, below)
    said |= remembered(said, terms)
    return Submission(
        task_id=uuid7(),
        actor=actor,
        provider=provider,
        payload=stored_payload,
        user_id=wanted.user_id or asker.user_id,
        timeout_seconds=given.pop("timeout_seconds", None) or wanted.timeout_seconds or terms.timeout_seconds,
        max_retries=terms.max_retries if wanted.max_retries is None else wanted.max_retries,
        max_age_seconds=wanted.max_age_seconds or terms.max_age_seconds,
        dedupe_ttl_seconds=wanted.dedupe_ttl_seconds or settings.defaults.dedupe_ttl_seconds,
        retry_delays=None if wanted.retry_delays is None else stored_delays(wanted.retry_delays),
        run_at=time_to_come(wanted.run_at),
        reach=None if asker.is_admin else asker.user_id,
        traceparent=traceparent,
        **said,
        **given,
    )


def told_to(url: str | None, said: dict[str, Any], settings: Settings, below: str) -> dict[str, Any]:
    """What changes for a task that names a webhook."""
    if url is None:
        return {}
    if fault := fault_of_literal(url, Allowances.for_webhooks(settings)):
        raise refusal(f"{below}/webhook_url", "invalid-task", fault)
    concerns = said.get("concerns", 0) | Concern.WEBHOOK.value
    return {"webhook_url": url, "concerns": concerns}


def remembered(said: dict[str, Any], terms: Terms) -> dict[str, Any]:
    """What changes for a task whose end is written down."""
    if not terms.is_remembered:
        return {}
    return {"concerns": said.get("concerns", 0) | Concern.MEMORY.value}


def edges_of(wanted: NewTask) -> dict[str, Any]:
    """What it waits for, as it is stored; of those that may end as they like it is said beside."""
    if not wanted.depends_on:
        return {}
    named = [each if isinstance(each, Dependency) else Dependency(key=each) for each in wanted.depends_on]
    loose = [each.key for each in named if each.on == "ended"]
    return {"depends_on": [each.key for each in named], **({"after_end": loose} if loose else {})}


def choose_provider(wanted: NewTask, known: KnownActor, settings: Settings, below: str) -> str:
    provider = wanted.provider or known.definition.provider
    if provider is None or not known.is_served_by(provider, settings):
        able = known.providers(settings)
        choice = f"choose one of: {', '.join(able)}" if able else f"none is configured for {wanted.actor}"
        if provider is None:
            detail = f"{wanted.actor} tasks have no default provider; {choice}"
            raise refusal(f"{below}/provider", "provider-required", detail)
        configured = settings.providers.get(provider)
        serves = f"; {provider} serves {', '.join(configured.actors)}" if configured else ""
        likely = meant(provider, able) if able and configured is None else choice
        detail = f"no provider {provider} does {wanted.actor} tasks{serves}; {likely}"
        raise refusal(f"{below}/provider", "unknown-provider", detail)
    return provider


def check_payload(
    payload: dict[str, Any],
    known: KnownActor,
    settings: Settings,
    below: str,
    beside: Collection[str],
    *,
    references: Collection[Reference] = (),
) -> None:
    """`beside` are the task's own fields, where the payload's stand among them. What stands at or under a reference is
    checked when it is there."""
    refuse_large_payload(payload, settings, below)
    faults = known.faults_of(payload, beside)
    if references:
        places = {each.place for each in references}
        faults = [each for each in faults if not is_at_or_under(each.place, places)]
    if faults:
        raise Refused("invalid-payload", (Wrong(pointer_to(at, below), detail) for at, detail in faults))


def refuse_large_payload(payload: dict[str, Any], settings: Settings, below: str) -> None:
    """Measuring a payload takes a tenth of the time that copying or checking it takes, so do it first."""
    size = len(_encode(payload))
    if size > settings.largest_payload_bytes:
        detail = f"a payload may have {settings.largest_payload_bytes:,} bytes as JSON; this one has {size:,}"
        raise refusal(below, "payload-too-large", detail)


def time_to_come(run_at: datetime | None) -> str | None:
    """A time that is past means now: written down as it is, it would go before everybody who waits."""
    return run_at.isoformat() if run_at is not None and run_at > datetime.now(UTC) else None


def keyed(
    pointers: Sequence[str], payload: dict[str, Any], references: Collection[Reference], known: KnownActor, below: str
) -> dict[str, Any]:
    """The task's concurrency key, if it has one, or what it is made of when its element is known; and what its moves
    must know for it."""
    schema, of_a_key = known.definition.payload_schema, {"concerns": Concern.KEY.value}
    if any(holds_one_at(pointer, references) for pointer in pointers):
        return {"concurrency_parts": parts_of(payload, pointers, schema), **of_a_key}
    key = key_of(payload, pointers, schema)
    if key is None:
        return {}
    if len(key) > LONGEST_KEY:
        detail = (
            f"it is the task's concurrency key, which has {LONGEST_KEY} characters at most; this one has {len(key)}"
        )
        raise refusal(f"{below}{pointers[0]}", "concurrency-key-too-long", detail)
    return {"concurrency_key": key, **of_a_key}

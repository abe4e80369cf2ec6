"""Providers over REST: how each one is, what happened to it, and what an operator sets over its configuration."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from litestar import Response, get, patch
from litestar.datastructures import State
from litestar.params import FromPath, QueryParameter
from pydantic import ConfigDict, Field, ValidationError

from windlass.services.api.access.audit import audit
from windlass.services.api.access.auth import Caller, require_admin, require_overview
from windlass.services.api.access.reasons import Reason
from windlass.services.api.http.bodies import read_json
from windlass.services.api.http.errors import Problem, invalid_fields
from windlass.services.api.http.pages import page
from windlass.services.api.operators.capabilities import Capabilities
from windlass.services.api.tasks.handlers import Asked
from windlass.shared.forms import Form
from windlass.shared.scrubbing import scrub
from windlass.shared.settings import Settings, queue_name
from windlass.shared.store.flow_control import flow
from windlass.shared.store.flow_control.flow import Holder, ProviderOverview, Rules
from windlass.shared.store.rows import ProviderEventRow
from windlass.shared.toml_tables import Rate


class ProviderChange(Form):
    """`PATCH /providers/{name}`: what is left out stays, null goes back to the configured value."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    limit: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    rate: Rate | None = None
    paused: bool | None = None
    breaker: Literal["auto", "open", "closed"] | None = None
    reason: Reason | None = None


class EveryProviderChange(Form):
    """`PATCH /providers`: all of them at once."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    paused: bool
    reason: Reason | None = None


@get("/providers")
async def list_providers(request: Asked, state: State) -> dict[str, Any]:
    """Every provider: limits, slots and who holds them, rates, pauses, breakers, lanes. Left out are providers that no
    configuration names any more and that nobody has used for a day."""
    return await list_of_all(request, state)


@patch("/providers")
async def change_every_provider(request: Asked, state: State) -> dict[str, Any]:
    """Pauses all of them, or lets all go on; answers with the providers as they are now."""
    require_admin(request.user)
    body = await read_json(request)
    try:
        change = EveryProviderChange.model_validate(body, strict=True)
    except ValidationError as error:
        raise invalid_fields(error, "invalid-provider", EveryProviderChange) from error
    before = await read(state)
    ended = {row.name: pause for row in before if (pause := ended_pause(row, change.model_dump()))}
    said = {"paused": change.paused, **({"ended_pauses": ended} if ended else {})}
    await audit(request, "providers.change", None, said, reason=change.reason)
    for row in before:
        await flow.change(state.pool, row.name, {"paused": change.paused}, **who_and_why(request, change.reason))
    return await list_of_all(request, state)


@get("/providers/{name:str}")
async def get_provider(request: Asked, state: State, name: FromPath[str]) -> dict[str, Any]:
    """One provider."""
    return await document_of(request, state, name)


@patch("/providers/{name:str}")
async def change_provider(request: Asked, state: State, name: FromPath[str]) -> dict[str, Any]:
    """In force within a second everywhere; answers with the provider as it is now."""
    require_admin(request.user)
    body = await read_json(request)
    try:
        change = ProviderChange.model_validate(body, strict=True)
    except ValidationError as error:
        raise invalid_fields(error, "invalid-provider", ProviderChange) from error
    before = await read(state, name)
    if not before:
        raise unknown_provider(name)
    wanted = change.model_dump(exclude_unset=True, exclude={"reason"})
    said = {**wanted, **ended_pause(before[0], wanted)}
    await audit(request, "provider.change", name, said, reason=change.reason)
    await flow.change(state.pool, name, wanted, **who_and_why(request, change.reason))
    return await document_of(request, state, name)


def who_and_why(request: Asked, reason: str | None) -> dict[str, Any]:
    return {"by": request.user.user_id, "why": None if reason is None else scrub(reason)}


@get("/providers/{name:str}/events")
async def list_provider_events(
    request: Asked,
    state: State,
    name: FromPath[str],
    cursor: Annotated[int, QueryParameter(ge=0, le=2**63 - 1)] = 2**63 - 1,
    limit: Annotated[int, QueryParameter(ge=1, le=500)] = 50,
) -> Response[dict[str, Any]]:
    """What happened to a provider as a whole, and why, newest first."""
    require_overview(request.user)
    if not await read(state, name):
        raise unknown_provider(name)

    async def read_rows(position: Any, number: int) -> list[tuple[Any, Any]]:
        rows = await flow.events(state.pool, name, before=position, limit=number)
        return [(row.event_id, event_document(row)) for row in rows]

    return await page(read_rows, cursor=cursor, limit=limit)


def event_document(row: ProviderEventRow) -> dict[str, Any]:
    """Postgres writes the times within JSON with an offset; all that we answer with end in `Z`."""
    document = dict(row)
    if isinstance(until := row.data.get("until"), str):
        document["data"] = {**row.data, "until": datetime.fromisoformat(until).astimezone(UTC)}
    return document


async def read(state: State, only: str | None = None) -> list[ProviderOverview]:
    settings: Settings = state.settings
    return await flow.overview(
        state.pool, Rules.of(settings), settings.lanes, heard_within_seconds=settings.lease_seconds, only=only
    )


async def list_of_all(request: Asked, state: State) -> dict[str, Any]:
    shown = state.registry.shown
    rows = [row for row in await read(state) if shown is None or shown.has_provider(row.name)]
    holders = await flow.holders(state.pool) if request.user.sees_everything else []
    return {"items": [whole_document(row, holders, request.user, state) for row in rows]}


async def document_of(request: Asked, state: State, name: str) -> dict[str, Any]:
    rows = await read(state, name)
    if not rows:
        raise unknown_provider(name)
    holders = await flow.holders(state.pool, name) if request.user.sees_everything else []
    return whole_document(rows[0], holders, request.user, state)


def ended_pause(row: ProviderOverview, wanted: dict[str, Any]) -> dict[str, Any]:
    """The provider's own pause, after a 429, that a change ends although nobody had set it."""
    if "paused" not in wanted or wanted["paused"] or row.paused_until is None:
        return {}
    return {"ended_pause": {"until": row.paused_until, "reason": row.pause_reason}}


def unknown_provider(name: str) -> Problem:
    return Problem(404, "provider-not-found", f"there is no provider {name}; GET /api/v1/providers lists them")


def whole_document(row: ProviderOverview, holders: Sequence[Holder], caller: Caller, state: State) -> dict[str, Any]:
    known: Capabilities = state.capabilities
    return {
        **provider_document(row, holders, caller, state.settings),
        "capabilities": known.of(row.name),
    }


def provider_document(
    row: ProviderOverview, holders: Sequence[Holder], caller: Caller, settings: Settings
) -> dict[str, Any]:
    """A provider as every endpoint returns it; to users it shows counts, not whose work it is nor why it failed."""
    all_of_it = caller.sees_everything
    configured = settings.providers.get(row.name)
    actors = list(configured.actors) if configured else row.actors
    pause = {"until": row.paused_until, "reason": row.pause_reason if all_of_it else None}
    return {
        "name": row.name,
        "actor": row.actor,
        "actors": actors,
        "queue": queue_name(row.actor, row.name),
        "queues": [queue_name(actor, row.name) for actor in actors],
        "limit": setting(row.configured_limit, row.limit_override),
        "rate": {
            **setting(row.configured_rate, row.rate_override),
            "left": row.rate_left,
            "free_at": row.rate_free_at if row.rate_left == 0 else None,
        },
        "slots": {
            "held": row.held,
            "holders": holder_documents(holders, row.name) if all_of_it else None,
        },
        "paused": row.paused,
        "pause": pause if row.paused_until is not None else None,
        "breaker": {
            "mode": row.breaker_mode,
            "state": row.breaker_state,
            "until": row.breaker_ends_at,
            "reason": row.breaker_reason if all_of_it else None,
            "failures": row.failures,
            "results": row.results,
        },
        "lane_credit": row.lane_credit,
        "retry_ratio": settings.lanes.retry_share(row.waiting_retries) / 100,
        "workers": row.workers,
    }


def setting(configured: Any, override: Any) -> dict[str, Any]:
    return {"configured": configured, "override": override, "effective": configured if override is None else override}


def holder_documents(holders: Sequence[Holder], provider: str) -> list[dict[str, Any]]:
    return [
        {"task_id": row.task_id, "worker_id": row.worker_id, "since": row.since}
        for row in holders
        if row.provider == provider
    ]


HANDLERS = [list_providers, change_every_provider, get_provider, change_provider, list_provider_events]

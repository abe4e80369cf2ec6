"""Is it alive, is it ready, and how is each part: readable without a key as far as the status word."""

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

from litestar import Request, Response, get
from litestar.datastructures import State

from windlass.services.api.access.auth import TOO_MANY_KEYS, bearer, caller_by_session, count_failure
from windlass.services.api.http.errors import RETRY_AFTER_SECONDS
from windlass.services.api.operators.room import Room
from windlass.shared import db
from windlass.shared.errors import words_of
from windlass.shared.scrubbing import scrub
from windlass.shared.settings import Settings
from windlass.shared.store.flow_control import flow
from windlass.shared.store.operating import reports, workers
from windlass.shared.store.operating.reports import BrokerReport
from windlass.shared.store.operating.room import Refusal

T = TypeVar("T")

OLDEST_SUPPORTED_REVISION = "0037"
REFUSALS: dict[Refusal, str] = {
    "disk-full": "its disk is full: nothing can be submitted and no result kept until it has room; reading goes on",
    "read-only": "it is read-only: nothing can be submitted and no result kept until it is not; reading goes on",
}
NOT_MIGRATED = "the schema is missing or too old, or has not this version's functions: run `windlass migrate`"
HEALTH_SECONDS = 3.0
"""How long each check may take. All of them run at once, so this bounds the whole answer as well."""

NOT_READY = "Postgres cannot be reached, or `windlass migrate` has not brought it to this version's schema yet"


@get("/health/live", public=True)
async def live() -> dict[str, str]:
    """Looks at nothing else: restarting the api does not mend Postgres."""
    return {"status": "alive"}


@get("/health/ready", public=True)
async def ready(state: State) -> Response[dict[str, Any]]:
    """Whether tasks can be accepted; RabbitMQ may be away for that."""
    postgres = await postgres_health(state.pool)
    if postgres["status"] == "healthy" and is_prepared(state):
        return Response({"status": "ready"})
    # Everybody may ask, so nobody is told addresses and names: they are under `components` for whoever has a key.
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return Response({"status": "not-ready", "detail": NOT_READY}, status_code=503, headers=headers)


def is_prepared(state: State) -> bool:
    """An api that was refused something as it started is about to end."""
    preparing = state.preparing
    return preparing.done() and not preparing.cancelled() and preparing.exception() is None


@get("/health", public=True)
async def health(request: Request[Any, Any, State], state: State) -> dict[str, Any]:
    """`healthy`, `degraded` or `unhealthy`; with a valid key also how each part is."""
    # Started first: a key that was in memory when the request came stays valid for this answer.
    knowing = asyncio.create_task(has_valid_key(request))
    components = await look_at_components(state.pool, state.room, state.settings)
    is_known = await knowing
    statuses = {component["status"] for component in components.values()}
    if components["postgres"]["status"] == "unhealthy":
        status = "unhealthy"
    else:
        status = "healthy" if statuses == {"healthy"} else "degraded"
    document: dict[str, Any] = {"status": status, "timestamp": datetime.now(UTC)}
    if is_known:
        document["components"] = components
    return document


async def has_valid_key(request: Request[Any, Any, State]) -> bool:
    """Or a session. While Postgres is away only one that was seen a moment ago is known to be valid. A wrong key is a
    guess here as anywhere else."""
    key = bearer(request.headers.get("authorization", ""))
    try:
        caller = await in_time(request.app.state.keyring.open(key) if key else caller_by_session(request))
    except db.AWAY_OR_BUSY:
        return False
    if caller is None and key:
        count_failure(request, TOO_MANY_KEYS)
    return caller is not None


async def in_time(check: Coroutine[Any, Any, T]) -> T:
    """Raises TimeoutError without waiting for the cancelled check: the driver would wait for a frozen server."""
    task = asyncio.create_task(check)
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # or asyncio logs it as not retrieved
    try:
        await asyncio.wait({task}, timeout=HEALTH_SECONDS)
        if not task.done():
            raise TimeoutError(f"no answer within {HEALTH_SECONDS:g} s")
        return task.result()
    finally:
        task.cancel()


async def postgres_health(pool: db.Database) -> dict[str, Any]:
    try:
        schema = await in_time(reports.schema(pool))
    except db.AWAY_OR_BUSY as error:
        return unreachable(error)
    if not schema.serves(OLDEST_SUPPORTED_REVISION):
        return {"status": "unhealthy", "detail": NOT_MIGRATED}
    return {"status": "healthy", "revision": schema.revision, "version": schema.server_version}


def unreachable(error: BaseException) -> dict[str, Any]:
    if isinstance(error, db.NOT_MIGRATED):
        return {"status": "unhealthy", "detail": NOT_MIGRATED}
    return {"status": "unhealthy", "detail": scrub(f"cannot be reached: {words_of(error)}")}


async def look_at_components(pool: db.Database, room: Room, settings: Settings) -> dict[str, dict[str, Any]]:
    """Each check fails for itself. Without Postgres nothing is known about the others."""
    postgres, space, *others = await asyncio.gather(
        postgres_health(pool),
        known(room_health(room), "postgres"),
        known(health_of_reporters(pool, settings), "broker", "dispatcher", "orchestrator", "janitor"),
        known(workers_health(pool, settings), "workers"),
        known(breakers_health(pool), "breakers"),
    )
    if postgres["status"] != "healthy":
        unknown = {"status": "unknown", "detail": "known only through Postgres"}
        others_named = ("broker", "dispatcher", "orchestrator", "janitor", "workers")
        return {"postgres": postgres, **dict.fromkeys(others_named, unknown)}
    components = {"postgres": {**postgres, **space["postgres"]}}
    for each in others:
        components |= each
    return components


async def known(check: Coroutine[Any, Any, dict[str, Any]], *names: str) -> dict[str, Any]:
    try:
        return await in_time(check)
    except db.AWAY_OR_BUSY + db.NOT_MIGRATED as error:
        detail = scrub(f"could not be checked: {words_of(error)}")
        return {name: {"status": "unknown", "detail": detail} for name in names}


async def room_health(room: Room) -> dict[str, Any]:
    refusal = await room.refusal()
    return {"postgres": {"status": "degraded", "detail": REFUSALS[refusal]} if refusal else {}}


async def health_of_reporters(pool: db.Database, settings: Settings) -> dict[str, Any]:
    said = await reports.recent(pool, within_seconds=settings.report_seconds)
    dispatchers = [row for row in said if row.service == "dispatcher"]
    orchestrators = [row for row in said if row.service == "orchestrator"]
    janitors = [row for row in said if row.service == "janitor"]
    return {
        "broker": broker_health(reports.broker_among(said)),
        "dispatcher": of(bool(dispatchers), f"{len(dispatchers)} heard of lately"),
        "orchestrator": of(bool(orchestrators), f"{len(orchestrators)} reported lately"),
        "janitor": of(any(row.healthy for row in janitors), f"{len(janitors)} heard of lately"),
    }


async def breakers_health(pool: db.Database) -> dict[str, Any]:
    open_breakers = await flow.open_breakers(pool)
    if not open_breakers:
        return {"breakers": of(healthy=True, detail="all closed")}
    return {"breakers": {"status": "degraded", "detail": "not closed: " + ", ".join(open_breakers)}}


def broker_health(report: BrokerReport | None) -> dict[str, Any]:
    """RabbitMQ, as the dispatchers say: nobody else rings."""
    if report is None:
        return of(healthy=False, detail="not known: no dispatcher was heard of lately")
    if report.state == "blocked":
        said = report.blocked_for or ""
        short_of = next((word for word in ("memory", "disk") if word in said), "memory or disk")
        detail = f"it takes no messages, for it is short of {short_of}: tasks are accepted and wait, what runs runs on"
        return {"status": "degraded", "detail": detail}
    if report.state == "away":
        return of(healthy=False, detail="no dispatcher reaches it: tasks are accepted and wait, what runs runs on")
    return {**of(healthy=True, detail="as the dispatcher says"), "version": report.version}


async def workers_health(pool: db.Database, settings: Settings) -> dict[str, Any]:
    live = await workers.count_live(pool, heard_within_seconds=settings.lease_seconds)
    unserved = await workers.unserved_queues(pool, for_seconds=settings.unserved_seconds)
    broken = await workers.broken_queues(pool, heard_within_seconds=settings.lease_seconds)
    health = of(live > 0, f"{live} heard of within a lease")
    if live and (unserved or broken):
        health["status"] = "degraded"
    for each in broken:
        health["detail"] += f"; {each.queue} is broken: {each.reason}"
    if unserved:
        health["detail"] += f"; tasks wait, and nobody serves them, in {', '.join(unserved)}"
    return {"workers": health}


def of(healthy: bool, detail: str) -> dict[str, Any]:  # noqa: FBT001 - reads as a sentence
    return {"status": "healthy" if healthy else "unhealthy", "detail": detail}


HANDLERS = [live, ready, health]

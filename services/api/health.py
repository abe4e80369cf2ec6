"""Is it alive, is it ready, and how is each part: readable without a key as far as the status word."""

import asyncio
from datetime import UTC, datetime
from typing import Any

from litestar import Request, Response, get
from litestar.datastructures import State

from services.api.auth import bearer
from shared import db
from shared.settings import Settings
from shared.store import keys, reports, workers

OLDEST_SUPPORTED_REVISION = "0001"


@get("/health/live", public=True)
async def live() -> dict[str, str]:
    """Looks at nothing else: restarting the api does not mend Postgres."""
    return {"status": "alive"}


@get("/health/ready", public=True)
async def ready(state: State) -> Response[dict[str, Any]]:
    """Whether tasks can be accepted; RabbitMQ may be away for that."""
    postgres = await postgres_health(state.pool)
    is_ready = postgres["status"] == "healthy" and state.preparing.done()
    return Response({"status": "ready" if is_ready else "not-ready", **postgres}, status_code=200 if is_ready else 503)


@get("/health", public=True)
async def health(request: Request[Any, Any, State], state: State) -> dict[str, Any]:
    components = await look_at_components(state.pool, state.settings)
    statuses = {component["status"] for component in components.values()}
    if components["postgres"]["status"] == "unhealthy":
        status = "unhealthy"
    else:
        status = "healthy" if statuses == {"healthy"} else "degraded"
    document: dict[str, Any] = {"status": status, "timestamp": datetime.now(UTC)}
    key = bearer(request.headers.get("authorization", ""))
    if key and status != "unhealthy" and await keys.authenticate(state.pool, key):
        document["components"] = components
    return document


async def postgres_health(pool: db.Database) -> dict[str, Any]:
    try:
        async with asyncio.timeout(3):
            revision = await reports.schema_revision(pool)
    except db.UNAVAILABLE as error:
        return {"status": "unhealthy", "detail": f"cannot be reached: {error or type(error).__name__}"}
    if revision is None or revision < OLDEST_SUPPORTED_REVISION:
        return {"status": "unhealthy", "detail": "the schema is missing or too old: run `windlass migrate`"}
    return {"status": "healthy", "revision": revision}


async def look_at_components(pool: db.Database, settings: Settings) -> dict[str, dict[str, Any]]:
    postgres = await postgres_health(pool)
    if postgres["status"] != "healthy":
        unknown = {"status": "unknown", "detail": "known only through Postgres"}
        return {"postgres": postgres, **dict.fromkeys(("broker", "dispatcher", "janitor", "workers"), unknown)}
    said = await reports.recent(pool, within_seconds=3 * settings.safety_poll_seconds)
    dispatchers = [row for row in said if row["service"] == "dispatcher"]
    janitors = [row for row in said if row["service"] == "janitor"]
    live_workers = await workers.count_live(pool, heard_within_seconds=settings.lease_seconds)
    return {
        "postgres": postgres,
        "broker": of(any(row["details"].get("broker") == "connected" for row in dispatchers), "as the dispatcher says"),
        "dispatcher": of(bool(dispatchers), f"{len(dispatchers)} heard of lately"),
        "janitor": of(any(row["healthy"] for row in janitors), f"{len(janitors)} heard of lately"),
        "workers": of(live_workers > 0, f"{live_workers} heard of within a lease"),
    }


def of(healthy: bool, detail: str) -> dict[str, Any]:  # noqa: FBT001 - reads as a sentence
    return {"status": "healthy" if healthy else "unhealthy", "detail": detail}


HANDLERS = [live, ready, health]

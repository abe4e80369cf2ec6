"""`/metrics`: what Prometheus reads from the api."""

from litestar import Response, get
from litestar.datastructures import State
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from shared.store import reports


@get("/metrics", public=True)
async def metrics(state: State) -> Response[bytes]:
    """`windlass_unaccounted_tasks` must be 0: more are tasks that no part of the system is going to move."""
    registry = CollectorRegistry()
    unaccounted = Gauge("windlass_unaccounted_tasks", "Tasks that nobody is going to move", registry=registry)
    said = await reports.recent(state.pool, within_seconds=3 * state.settings.safety_poll_seconds)
    counts = [row["details"].get("unaccounted_tasks", 0) for row in said if row["service"] == "janitor"]
    unaccounted.set(max(counts, default=0))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)

"""`/metrics`: what Prometheus reads from the api, with a key on its port for everything, without on one of its own."""

import asyncio
from typing import get_args

from litestar import Response, get
from litestar.datastructures import State
from prometheus_client import CollectorRegistry, generate_latest

from windlass.services.api.access.auth import require_overview
from windlass.services.api.actors.registry import Registry
from windlass.services.api.operators.cluster import DEADLINE_SECONDS, ClusterMetrics, ClusterReader
from windlass.services.api.streams.event_stream import StreamKind
from windlass.services.api.tasks.handlers import Asked
from windlass.shared import db
from windlass.shared.metrics.services import STREAM_CLIENTS, STREAMS_CUT
from windlass.shared.metrics.serving import CONTENT_TYPE, MetricsServer, own_registry
from windlass.shared.settings import Settings


class Metrics:
    """This process' own figures, and with each answer those that Postgres has about everything."""

    def __init__(self, settings: Settings, pool: db.Database, actors: Registry) -> None:
        self._registry = own_registry(settings, "api")
        for kind in get_args(StreamKind):
            STREAM_CLIENTS.labels(kind)
            STREAMS_CUT.labels(kind)
        self._cluster = ClusterReader(settings, pool, actors)
        self._loop = asyncio.get_running_loop()
        self._server = None if settings.metrics_port is None else MetricsServer(settings, self._answer)

    def start(self) -> None:
        if self._server is not None:
            self._server.start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()

    async def tell(self) -> bytes:
        """Written down on another thread: it takes a few milliseconds, in which a stream could have moved."""
        return await asyncio.to_thread(written, self._registry, await self._cluster.look())

    def _answer(self) -> bytes:
        """On the server's thread. A loop that does not get round to it is told of as Postgres that does not answer."""
        looking = asyncio.run_coroutine_threadsafe(self._cluster.look(), self._loop)
        try:
            figures = looking.result(DEADLINE_SECONDS + 1)
        except TimeoutError:
            figures = ClusterMetrics(None)
        return written(self._registry, figures)


def written(registry: CollectorRegistry, figures: ClusterMetrics) -> bytes:
    return generate_latest(registry) + generate_latest(figures)


@get("/metrics")
async def metrics(request: Asked, state: State) -> Response[bytes]:
    """Everything that `docs/metrics.md` lists for the api; without Postgres, everything that it knows by itself. It is
    about everybody: for viewers and admins. On a port of its own (`WINDLASS_METRICS_PORT`) it needs no key."""
    require_overview(request.user)
    return Response(await state.metrics.tell(), media_type=CONTENT_TYPE)

"""The API's process: REST and server-sent events for any number of clients, with Postgres alone behind it."""

import asyncio
import logging
import signal
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from litestar import Litestar, Router
from litestar.datastructures import State
from litestar.middleware import DefineMiddleware
from litestar.openapi import OpenAPIConfig
from litestar.types import ASGIApp, Receive, Scope, Send

from services.api import health, history, metrics, stats, tasks, workers
from services.api.auth import Authentication
from services.api.errors import HANDLERS
from services.api.hub import Hub
from shared import db, logs
from shared.settings import Settings
from shared.store import keys, providers

log = logging.getLogger("api")


def create_app(settings: Settings) -> Litestar:
    @asynccontextmanager
    async def connected(app: Litestar) -> AsyncIterator[None]:
        pool = await db.open_pool(settings, "api", most=10)
        hub = Hub(settings, pool)
        preparing = asyncio.create_task(prepare(pool, settings))
        app.state.update({"settings": settings, "pool": pool, "hub": hub, "preparing": preparing})
        running = [asyncio.create_task(hub.run()), preparing]
        yield
        for task in running:
            task.cancel()
        pool.terminate()

    return Litestar(
        route_handlers=[
            Router("/api/v1", route_handlers=[*tasks.HANDLERS, *history.HANDLERS, *workers.HANDLERS, *stats.HANDLERS]),
            *health.HANDLERS,
            metrics.metrics,
        ],
        lifespan=[connected],
        state=State(),
        middleware=[
            number_requests,
            DefineMiddleware(Authentication, exclude="^/schema", exclude_from_auth_key="public"),
        ],
        exception_handlers=HANDLERS,
        openapi_config=OpenAPIConfig(title="Windlass", version="1", path="/schema"),
        request_max_body_size=2_000_000,
        logging_config=None,
        debug=False,
    )


async def prepare(pool: db.Database, settings: Settings) -> None:
    """Writes what the configuration says, as soon as Postgres is there; the api is not ready before."""

    async def write() -> None:
        await providers.configure(pool, settings)
        if settings.api_key is not None:
            await keys.ensure(pool, settings.api_key, role="admin", user_id="admin")

    await db.until_available("api", write)


def number_requests(app: ASGIApp) -> ASGIApp:
    """Every request has an id, which its error documents and log lines carry."""

    async def numbered(scope: Scope, receive: Receive, send: Send) -> None:
        scope["request_id"] = uuid.uuid4().hex  # type: ignore[typeddict-unknown-key]
        await app(scope, receive, send)

    return numbered


class Server(uvicorn.Server):
    """Closes the streams when it is told to stop; they would hold up a graceful shutdown for ever."""

    def __init__(self, config: uvicorn.Config, app: Litestar) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        self._app.state.hub.close()
        await super().shutdown(sockets)  # type: ignore[arg-type]


def main() -> None:
    settings = Settings()
    logs.start(settings, "api")
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=2,
        timeout_keep_alive=75,
    )
    # Uvicorn raises the signal that ended it once more when it is done, for whoever handled it before: nobody.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    log.info("listening on http://%s:%d", settings.host, settings.port)
    Server(config, app).run()

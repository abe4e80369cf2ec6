"""The API's process: REST and server-sent events for any number of clients, with Postgres alone behind it."""

import asyncio
import gc
import logging
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import uvicorn
from litestar import Litestar, Router
from litestar.config.cors import CORSConfig
from litestar.datastructures import State
from litestar.exceptions import ValidationException
from litestar.middleware import DefineMiddleware

from windlass.services.api.access.auth import Authentication
from windlass.services.api.access.keyring import Keyring
from windlass.services.api.access.stream_tokens import StreamTokens
from windlass.services.api.access.throttle import Throttle
from windlass.services.api.actors.registry import Registry
from windlass.services.api.http.connections import Connection
from windlass.services.api.http.errors import HANDLERS
from windlass.services.api.http.methods import answering_every_method
from windlass.services.api.http.page import Page, serving_page
from windlass.services.api.http.queries import QueryParameters
from windlass.services.api.http.request_ids import identify_requests, trace_requests
from windlass.services.api.http.request_metrics import RequestMetrics
from windlass.services.api.http.security_headers import cautious
from windlass.services.api.media.links import MediaLinks
from windlass.services.api.operators import health, metrics
from windlass.services.api.operators.capabilities import Capabilities
from windlass.services.api.operators.queue_figures import QueueFigures
from windlass.services.api.operators.room import Room
from windlass.services.api.reference import problem_pages
from windlass.services.api.reference.serving import openapi_config
from windlass.services.api.routes import ROUTES
from windlass.services.api.streams.hub import Hub
from windlass.services.api.tasks.group_commit import GroupCommit
from windlass.services.api.webhooks.looking_up import CatchUpOnWebhooks
from windlass.services.api.webhooks.secrets import EndpointSecrets
from windlass.shared import db, tracing
from windlass.shared.errors import words_of
from windlass.shared.features.catching_up import CatchUp
from windlass.shared.features.memory.subscriber import MEMORY
from windlass.shared.features.projects.subscriber import PROJECTS
from windlass.shared.features.workflows.subscriber import WORKFLOWS
from windlass.shared.process import logs
from windlass.shared.process.pulse import Pulse
from windlass.shared.settings import Settings
from windlass.shared.settings.loading import settings_or_exit
from windlass.shared.storage import MediaStorage, UnusableStorage, claim_directory, open_storage
from windlass.shared.store.access import keys
from windlass.shared.store.flow_control import providers
from windlass.shared.store.operating import registry

log = logging.getLogger("api")

CLOSING_SECONDS = 1


def create_app(settings: Settings) -> Litestar:
    storage = open_storage(settings)

    @asynccontextmanager
    async def connected(app: Litestar) -> AsyncIterator[None]:
        pool = await db.open_pool(settings, "api", most=8)
        lists = await db.open_reading_pool(settings, "api", most=2)
        features = await db.open_feature_pool(settings, "api", most=2)
        app.state.features = features
        keyring = Keyring(pool)
        actors = Registry(settings, pool)
        channels = {keys.CHANNEL: keyring.forget, registry.CHANNEL: actors.heard}
        hub = Hub(settings, channels, look_too=actors.look)
        media_links = MediaLinks(settings, pool)
        preparing = asyncio.create_task(prepare(pool, settings, storage, media_links, actors))
        app.state.update({"settings": settings, "pool": pool, "lists": lists, "hub": hub, "preparing": preparing})
        app.state.update({"keyring": keyring, "throttle": Throttle(), "stream_tokens": StreamTokens(pool)})
        app.state.update({"group_commit": GroupCommit(pool), "room": Room(pool)})
        app.state.catch_up_on_memory = CatchUp(features, MEMORY)
        app.state.catch_up_on_webhooks = CatchUpOnWebhooks(features)
        app.state.catch_up_on_projects = CatchUp(features, PROJECTS)
        app.state.catch_up_on_workflows = CatchUp(features, WORKFLOWS)
        app.state.registry = actors
        app.state.endpoint_secrets = EndpointSecrets(pool)
        app.state.capabilities = Capabilities(settings)
        app.state.queue_figures = QueueFigures(settings, pool)
        app.state.update({"storage": storage, "media_links": media_links})
        app.state.metrics = metrics.Metrics(settings, pool, actors)
        app.state.metrics.start()
        running = [asyncio.create_task(hub.run()), asyncio.create_task(actors.run()), preparing]
        running.append(asyncio.create_task(Pulse(settings).run()))
        yield
        await asyncio.to_thread(app.state.metrics.stop)
        for task in running:
            task.cancel()
        pool.terminate()
        lists.terminate()
        features.terminate()

    queries = QueryParameters()
    return Litestar(
        route_handlers=[
            Router("/api/v1", route_handlers=ROUTES),
            *health.HANDLERS,
            *problem_pages.HANDLERS,
            metrics.metrics,
        ],
        lifespan=[connected],
        state=State(),
        middleware=[
            trace_requests,
            DefineMiddleware(Authentication, exclude="^/schema", exclude_from_auth_key="public"),
        ],
        before_request=queries.refuse_unknown,
        exception_handlers={**HANDLERS, ValidationException: queries.explain},
        cors_config=cross_origin(settings),
        openapi_config=openapi_config(),
        request_max_body_size=settings.largest_body_bytes,
        logging_config=None,
        debug=False,
    )


def cross_origin(settings: Settings) -> CORSConfig | None:
    """Pages from these origins may call the api with a key; no cookie is ever taken from them."""
    if not settings.cors_origins:
        return None
    return CORSConfig(
        allow_origins=list(settings.cors_origins),
        allow_methods=["GET", "POST", "PATCH", "DELETE"],
        allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID", "X-Request-ID"],
        expose_headers=["Idempotent-Replayed", "Location", "Retry-After", "Windlass-Build", "X-Request-ID"],
    )


async def prepare(
    pool: db.Database, settings: Settings, storage: MediaStorage, media_links: MediaLinks, actors: Registry
) -> None:
    """Writes what the configuration says, as soon as Postgres is there; the api is not ready before."""

    async def write() -> None:
        await claim_directory(pool, storage)
        await media_links.secret()
        await providers.configure(pool, settings)
        await actors.look(pool)
        if settings.api_key is not None:
            await store_first_key(pool, settings.api_key)

    await db.until_available("api", write)


async def store_first_key(pool: db.Database, key: str) -> None:
    """An api goes on without it: others may have keys that open."""
    refusal = await keys.ensure(pool, key, role="admin", user_id="admin", created_by="settings")
    if refusal is not None:
        log.critical("the key in WINDLASS_API_KEY opens nothing: %s; set one with another id, or none", refusal)


class Server(uvicorn.Server):
    """Closes the streams when it is told to stop; they would hold up a graceful shutdown for ever.

    It ends by itself when it cannot be prepared: half an api, which is never ready, helps nobody.
    """

    def __init__(self, config: uvicorn.Config, app: Litestar) -> None:
        super().__init__(config)
        self._app = app
        self.is_refused = False

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup(sockets)  # type: ignore[arg-type]
        if self.started:
            self._app.state.preparing.add_done_callback(self._end_if_refused)

    def _end_if_refused(self, preparing: asyncio.Task[None]) -> None:
        error = None if preparing.cancelled() else preparing.exception()
        if error is not None:
            log.critical("%s", words_of(error), exc_info=None if isinstance(error, UnusableStorage) else error)
            self.is_refused = self.should_exit = True

    async def shutdown(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        self._app.state.hub.close()
        asyncio.get_running_loop().call_later(CLOSING_SECONDS, self._cut_off_the_stuck)
        await super().shutdown(sockets)  # type: ignore[arg-type]

    def _cut_off_the_stuck(self) -> None:
        """Their clients take nothing, not even the end."""
        for connection in list(self.server_state.connections):
            if isinstance(connection, Connection):
                connection.cut_off_if_stuck()


def main() -> None:
    settings = settings_or_exit("database_url")
    logs.start(settings, "api")
    tracing.start(settings, "api")
    try:
        app = create_app(settings)
    except UnusableStorage as error:
        raise SystemExit(f"windlass: {error}") from None
    page = Page()
    served = serving_page(answering_every_method(app), page)
    config = uvicorn.Config(
        identify_requests(RequestMetrics(cautious(served, build=page.build))),
        host=settings.host,
        port=settings.port,
        http=partial(Connection, header_seconds=settings.header_seconds),  # type: ignore[arg-type]
        log_config=None,
        access_log=False,
        proxy_headers=False,  # whom to believe about a client's address is WINDLASS_TRUSTED_PROXIES' to say
        timeout_graceful_shutdown=2,
        timeout_keep_alive=75,
    )
    # Uvicorn raises the signal that ended it once more when it is done, for whoever handled it before: nobody.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.collect()
    gc.freeze()  # else each large body would make the collector look through everything that was imported
    log.info("listening on http://%s:%d", settings.host, settings.port)
    server = Server(config, app)
    server.run()
    tracing.stop()
    if server.is_refused:
        raise SystemExit(1)

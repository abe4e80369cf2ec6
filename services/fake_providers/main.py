"""The fake providers' process: one app for all of them, at the address that the others were given."""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import uvicorn
from litestar import Litestar, Response, Router
from litestar.di import Provide
from litestar.types import ASGIApp, Message, Middleware, Receive, Scope, Send

from windlass.services.fake_providers import control, leonardo, midjourney, openai, openrouter
from windlass.services.fake_providers.books import Books
from windlass.services.fake_providers.callbacks import Callbacks
from windlass.services.fake_providers.connection import Connection, HungUp
from windlass.services.fake_providers.database import open_database
from windlass.services.fake_providers.desk import Desk, Garbage, Incoming, Refusal
from windlass.services.fake_providers.files import file
from windlass.services.fake_providers.scripts import Scripts
from windlass.services.fake_providers.uploads import Uploads, receive_upload
from windlass.shared.process import logs
from windlass.shared.settings import Settings
from windlass.shared.settings.loading import settings_or_exit

log = logging.getLogger("providers")

CLOSING_SECONDS = 0.5
LARGEST_BODY_BYTES = 50_000_000
UNANSWERED = 499
EXPECTED = (HungUp, Garbage, Refusal)
API = {"openrouter": openrouter, "openai": openai, "leonardo": leonardo, "midjourney": midjourney}


def create_app(settings: Settings) -> Litestar:
    url = settings.fake_providers_url
    assert url is not None
    database = open_database(settings.data_dir / "fake_providers")
    books = Books(database, settings.fake_job_seconds)
    scripts, uploads, callbacks = Scripts(database), Uploads(database), Callbacks(books)
    callbacks.tell_for("leonardo", leonardo.teller(url, books))
    callbacks.tell_for("midjourney", midjourney.teller(url))

    @asynccontextmanager
    async def telling(_app: Litestar) -> AsyncIterator[None]:
        callbacks.take_up()
        yield
        await callbacks.close()
        database.close()

    def router(provider: str) -> Router:
        desk = Desk(provider, url, books, scripts, callbacks)
        return Router(
            f"/{provider}",
            route_handlers=API[provider].HANDLERS,
            dependencies={"desk": Provide(lambda: desk, sync_to_thread=False)},
            exception_handlers={Refusal: API[provider].refuse},
        )

    return Litestar(
        route_handlers=[*map(router, API), control.router(), file, receive_upload],
        lifespan=[telling],
        dependencies={
            "books": Provide(lambda: books, sync_to_thread=False),
            "scripts": Provide(lambda: scripts, sync_to_thread=False),
            "uploads": Provide(lambda: uploads, sync_to_thread=False),
        },
        middleware=[counting(books)],
        after_exception=[tell_what_nobody_expected],
        exception_handlers={HungUp: nobody_to_answer, Garbage: unreadable},
        request_max_body_size=LARGEST_BODY_BYTES,
        openapi_config=None,
        logging_config=None,
    )


async def tell_what_nobody_expected(error: Exception, scope: Scope) -> None:
    if getattr(error, "status_code", 500) >= 500 and not isinstance(error, EXPECTED):
        log.error("%s failed", scope["path"], exc_info=error)


def nobody_to_answer(_request: Incoming, _error: HungUp) -> Response[None]:
    return Response(None, status_code=UNANSWERED)


def unreadable(_request: Incoming, _error: Garbage) -> Response[str]:
    return Response("<html><body>Just a moment…</body></html>", status_code=200, media_type="text/html")


def counting(books: Books) -> Middleware:
    """Each call to a provider goes into its books before it is answered."""

    def middleware(app: ASGIApp) -> ASGIApp:
        async def counted(scope: Scope, receive: Receive, send: Send) -> None:
            async def note(message: Message) -> None:
                provider, _, path = scope.get("path_template", scope["path"]).lstrip("/").partition("/")
                if message["type"] == "http.response.start" and provider in API:
                    status = "none" if message["status"] == UNANSWERED else str(message["status"])
                    books.count_call(provider, f"{scope.get('method')} /{path}", status)
                await send(message)

            await app(scope, receive, note)

        return counted

    return middleware


class Server(uvicorn.Server):
    """Hangs up on whoever is still there some moments after it was told to stop."""

    async def shutdown(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        asyncio.get_running_loop().call_later(CLOSING_SECONDS, self._hang_up)
        await super().shutdown(sockets)  # type: ignore[arg-type]

    def _hang_up(self) -> None:
        for connection in list(self.server_state.connections):
            if isinstance(connection, Connection):
                connection.drop()


def main() -> None:
    settings = settings_or_exit("fake_providers_url")
    assert settings.fake_providers_url is not None
    logs.start(settings, "providers")
    address = urlsplit(settings.fake_providers_url)
    config = uvicorn.Config(
        create_app(settings),
        host=address.hostname or "127.0.0.1",
        port=address.port or 80,
        http=Connection,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=2,
        timeout_keep_alive=75,
    )
    # Uvicorn raises the signal that ended it once more when it is done, for whoever handled it before: nobody.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    log.info("answering for providers without a key at %s", settings.fake_providers_url)
    Server(config).run()

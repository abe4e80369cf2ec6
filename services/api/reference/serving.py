"""Serves the document at `/schema/openapi.json` and the page at `/schema`."""

from typing import Any

from litestar import Request, Router
from litestar.enums import MediaType
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin, OpenAPIRenderPlugin

from windlass.shared.settings import Settings
from windlass.shared.submission.known import Actors


class CompletedDocument(JsonRenderPlugin):
    """For machines."""

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        from windlass.services.api.reference.openapi import complete  # noqa: PLC0415 - built when somebody asks, not at start

        return self.render_json(request, complete(openapi_schema, *registered(request)))


class ReadablePage(OpenAPIRenderPlugin):
    """For people, also without the internet: Litestar's own pages load their scripts from elsewhere."""

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        from windlass.services.api.reference.openapi import complete  # noqa: PLC0415
        from windlass.services.api.reference.page import render  # noqa: PLC0415

        return render(complete(openapi_schema, *registered(request))).encode()


def registered(request: Request[Any, Any, Any]) -> tuple[Actors, Settings]:
    """The document follows what is registered, so that it is made anew each time."""
    state = request.app.state
    return state.registry.known_so_far, state.settings


def page_headers() -> dict[str, str]:
    """The page has one style sheet of its own, known by its hash, and nothing else to load or run."""
    from windlass.services.api.reference.page import style_hash  # noqa: PLC0415

    allowed = f"default-src 'none'; style-src 'sha256-{style_hash()}'"
    return {"Content-Security-Policy": f"{allowed}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"}


def openapi_config() -> OpenAPIConfig:
    return OpenAPIConfig(
        title="Windlass",
        version="1",
        path="/schema",
        use_handler_docstrings=True,
        openapi_router=Router("/schema", route_handlers=[], include_in_schema=False, response_headers=page_headers()),
        operation_id_creator=lambda handler, _method, _path: handler.fn.__name__,
        render_plugins=[CompletedDocument(media_type=MediaType.JSON), ReadablePage(path="/")],
    )

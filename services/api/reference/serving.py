"""Serves the document at `/schema/openapi.json` and the page at `/schema`."""

from typing import Any

from litestar import Request
from litestar.enums import MediaType
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin, OpenAPIRenderPlugin


class CompletedDocument(JsonRenderPlugin):
    """For machines."""

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        from services.api.reference.openapi import complete  # noqa: PLC0415 - built when somebody asks, not at start

        return self.render_json(request, complete(openapi_schema))


class ReadablePage(OpenAPIRenderPlugin):
    """For people, also without the internet: Litestar's own pages load their scripts from elsewhere."""

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:  # noqa: ARG002
        from services.api.reference.openapi import complete  # noqa: PLC0415
        from services.api.reference.page import render  # noqa: PLC0415

        return render(complete(openapi_schema)).encode()


def openapi_config() -> OpenAPIConfig:
    return OpenAPIConfig(
        title="Windlass",
        version="1",
        path="/schema",
        operation_id_creator=lambda handler, _method, _path: handler.fn.__name__,
        render_plugins=[CompletedDocument(media_type=MediaType.JSON), ReadablePage(path="/")],
    )

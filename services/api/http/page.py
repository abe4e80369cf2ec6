"""The page at `/`: a committed build, read once, and answered before the API is asked for anything."""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from windlass.services.api.media.ranges import is_named

BUILD = Path(__file__).parent.parent / "page"
INDEX = "index.html"
BELOW = "page/"
"""The build asks for its own files under this name; views have the rest."""
NOT_VIEWS = ("/api", "/schema", "/problems", "/health", "/metrics")
NOT_BUILT = "There is no page in this Windlass: `make web` builds it. The API is described at /schema.\n"

MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
COMPRESSED = ("text/", "image/svg", "application/json", "application/manifest")

CAUTION = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "default-src 'self'; img-src 'self' blob: data:; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'self'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "Vary": "Accept-Encoding",
}
"""Names never change with their contents, so a browser asks each time, and mostly hears that it has it already."""


@dataclass(frozen=True)
class File:
    """One file of the build, as it is and as it is sent to who takes it compressed."""

    media_type: str
    etag: str
    body: bytes
    status: int = 200

    @classmethod
    def of(cls, media_type: str, body: bytes, status: int = 200) -> "File":
        return cls(media_type, f'"{hashlib.sha256(body).hexdigest()[:32]}"', body, status)

    @property
    def compressed(self) -> "File | None":
        if not self.media_type.startswith(COMPRESSED):
            return None
        return File(self.media_type, f'{self.etag[:-1]}-gzip"', gzip.compress(self.body, mtime=0), self.status)


class Page:
    """Every file of a build; one sentence where there is none."""

    def __init__(self, directory: Path = BUILD) -> None:
        files = {
            str(path.relative_to(directory)): File.of(MEDIA_TYPES[path.suffix], path.read_bytes())
            for path in sorted(directory.rglob("*"))
            if path.suffix in MEDIA_TYPES
        }
        self._plain = {INDEX: File.of(MEDIA_TYPES[".txt"], NOT_BUILT.encode(), 404), **files}
        self._compressed = {name: small for name, file in files.items() if (small := file.compressed)}
        built_from = directory / "BUILT_FROM"
        self.build = build_name(built_from.read_text().strip() if built_from.is_file() else "")

    def answer_to(self, scope: HTTPScope) -> File | None:
        """What is shown at a path; none where the API has to answer. Which view it is, the page finds out itself."""
        path = scope["path"]
        name = path.lstrip("/").removeprefix(BELOW)
        if name not in self._plain:
            is_view = path == "/" or (not path.startswith(NOT_VIEWS) and "text/html" in header(scope, b"accept"))
            if not is_view:
                return None
            name = INDEX
        takes_less = "gzip" in header(scope, b"accept-encoding")
        return (takes_less and self._compressed.get(name)) or self._plain[name]


def build_name(built_from: str) -> str:
    """As every answer tells it: a page of another build knows by it that there is a newer one."""
    return f"{version('windlass')}+{built_from[:12]}".rstrip("+")


def serving_page(app: ASGIApp, page: Page) -> ASGIApp:
    """In front of the API: what a person's browser asks for needs no route and no key."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        is_read = scope["type"] == ScopeType.HTTP and scope["method"] in {"GET", "HEAD"}
        file = page.answer_to(scope) if is_read else None  # type: ignore[arg-type]
        if file is None:
            await app(scope, receive, send)
            return
        scope["path_template"] = "/"  # for the metrics: views are one page
        known = is_named(file.etag, [header(scope, b"if-none-match")])  # type: ignore[arg-type]
        status = 304 if known and file.status == 200 else file.status
        body = b"" if status == 304 or scope["method"] == "HEAD" else file.body  # type: ignore[typeddict-item]
        headers = headers_of(file) if status != 304 else {**CAUTION, "ETag": file.etag}
        fields = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": fields})
        await send({"type": "http.response.body", "body": body, "more_body": False})

    return answer


def headers_of(file: File) -> Mapping[str, str]:
    encoded = {"Content-Encoding": "gzip"} if file.etag.endswith('-gzip"') else {}
    return {
        **CAUTION,
        **encoded,
        "Content-Type": file.media_type,
        "Content-Length": str(len(file.body)),
        "ETag": file.etag,
    }


def header(scope: HTTPScope, wanted: bytes) -> str:
    return ", ".join(value.decode("latin-1") for name, value in scope["headers"] if name == wanted)

"""Media over REST: the files that came of tasks, whole or in part, and what a workflow run has brought about."""

import logging
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from litestar import Request, Response, get
from litestar.datastructures import State
from litestar.params import FromPath, FromQuery, QueryParameter

from windlass.services.api.access.auth import Caller
from windlass.services.api.http.errors import RETRY_AFTER_SECONDS, Problem
from windlass.services.api.http.methods import is_head
from windlass.services.api.http.pages import LARGE_ROWS_AT_ONCE, page
from windlass.services.api.media.file_response import FileResponse
from windlass.services.api.media.ranges import Unsatisfiable, is_named, still_applies, wanted_range
from windlass.services.api.tasks.handlers import Asked
from windlass.services.api.tasks.listing import Cursor, Limit
from windlass.services.api.tasks.schemas import provider_job_for
from windlass.shared.errors import words_of
from windlass.shared.storage import MediaStorage, MissingMedia, StorageError
from windlass.shared.store import orders
from windlass.shared.store.orders import OrderWithContents, OwnedContent, WantedMedia
from windlass.shared.store.rows import ContentRow

log = logging.getLogger("api")

PATIENCE = 6
"""A player that has buffered enough reads nothing for a while: so many times the patience that streams have."""

Expires = Annotated[str | None, QueryParameter(description="Of a signed url: until when it is good.")]
Signature = Annotated[str | None, QueryParameter(description="Of a signed url, instead of a key.")]
Viewing = Request[Caller | None, None, State]


@get("/media/{content_id:uuid}", signed_url=True)
async def get_media(
    request: Viewing,
    state: State,
    content_id: FromPath[UUID],
    expires: Expires = None,  # noqa: ARG001 - looked at before it comes here
    signature: Signature = None,  # noqa: ARG001
) -> Response[Any]:
    """One file, or with `Range` a part of it. A url from a task's result needs no key until it expires."""
    row = await visible_content(request, state, content_id)
    return await file_response(request, state, row)


@get("/workflow-runs/{workflow_run_id:str}/media")
async def list_workflow_run_media(
    request: Asked, state: State, workflow_run_id: FromPath[str], cursor: Cursor = None, limit: Limit = 50
) -> Response[dict[str, Any]]:
    """What was generated in a workflow run, newest first, each with its files."""
    return await page_of_media(request, state, WantedMedia(workflow_run_id=workflow_run_id), cursor, limit)


@get("/media")
async def list_media(  # noqa: PLR0917 - Litestar passes them by name
    request: Asked,
    state: State,
    workflow_run_id: FromQuery[str | None] = None,
    interaction_id: FromQuery[str | None] = None,
    provider: FromQuery[str | None] = None,
    created_after: FromQuery[datetime | None] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response[dict[str, Any]]:
    """What was generated, and what was brought, newest first, each with its files."""
    after = created_after and created_after.replace(tzinfo=created_after.tzinfo or UTC)
    wanted = WantedMedia(workflow_run_id, interaction_id, provider, created_after=after)
    return await page_of_media(request, state, wanted, cursor, limit)


async def page_of_media(
    request: Asked, state: State, wanted: WantedMedia, cursor: UUID | None, limit: int
) -> Response[dict[str, Any]]:
    if "\0" in f"{wanted.workflow_run_id}{wanted.interaction_id}{wanted.provider}":
        raise Problem(422, "unstorable-value", "a value cannot be compared: it contains a NUL character")
    own = replace(wanted, user_id=request.user.own)

    async def read(position: Any, number: int) -> list[tuple[Any, Any]]:
        rows = await orders.newest(state.lists, own, before=position, limit=number)
        return [(row.generation_id, await generation_document(row, request.user, state)) for row in rows]

    return await page(read, cursor=cursor, limit=limit, at_once=LARGE_ROWS_AT_ONCE)


async def visible_content(request: Viewing, state: State, content_id: UUID) -> OwnedContent:
    """Who came by a signed url sees that one file; to everybody else a foreign one is as if it did not exist."""
    row = await orders.content(state.pool, content_id)
    if row is None or not (request.user is None or request.user.may_see(row.user_id)):
        raise Problem(404, "media-not-found", f"there is no media {content_id}")
    return row


async def file_response(request: Viewing, state: State, row: OwnedContent) -> FileResponse:
    size, etag = row.size_bytes, f'"{row.sha256}"'
    headers = headers_of(row, etag)
    if is_named(etag, request.headers.getall("if-none-match", [])):
        return FileResponse(304, headers)
    storage: MediaStorage = state.storage
    await require_file(storage, row)
    if is_head(request.scope):
        return FileResponse(200, {**headers, "Content-Length": str(size)})
    applies = still_applies(etag, request.headers.get("if-range"))
    try:
        part = wanted_range(request.headers.get("range"), size) if applies else None
    except Unsatisfiable:
        detail = f"the file has {size} bytes"
        raise Problem(416, "range-not-satisfiable", detail, headers={"Content-Range": f"bytes */{size}"}) from None
    start, end = part or (0, size)
    headers["Content-Length"] = str(end - start)
    if part is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    patience_seconds = PATIENCE * state.settings.stream_patience_seconds
    pieces = storage.read(row.place, start, end)
    return FileResponse(206 if part else 200, headers, pieces, patience_seconds=patience_seconds)


def headers_of(row: ContentRow, etag: str) -> dict[str, str]:
    """The file is somebody else's work: a browser takes it for what the row says, and runs nothing of it."""
    return {
        "Content-Type": row.media_type,
        "Content-Disposition": f'inline; filename="{row.content_id}.{row.extension.lstrip(".")}"',
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, max-age=31536000, immutable",
        "Vary": "Authorization, Cookie",
        "ETag": etag,
        "Accept-Ranges": "bytes",
    }


async def require_file(storage: MediaStorage, row: OwnedContent) -> None:
    """Asked before anything is answered: half of a file with a 200 in front would be believed."""
    try:
        size = await storage.size(row.place)
    except MissingMedia:
        size = None
    except StorageError as error:
        log.warning("the media storage does not answer: %s", words_of(error))
        headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
        detail = "the media storage cannot be reached at the moment"
        raise Problem(503, "storage-unavailable", detail, headers=headers) from error
    if size != row.size_bytes:
        found = "is not there" if size is None else f"has {size} bytes instead of {row.size_bytes}"
        log.error("media %s of task %s: the file %s %s", row.content_id, row.task_id, row.place, found)
        detail = "the file is missing in the media storage; the server's log says which one it is"
        raise Problem(500, "media-missing", detail)


async def generation_document(row: OrderWithContents, caller: Caller, state: State) -> dict[str, Any]:
    shown = ("generation_id", "task_id", "provider", "operation", "status", "request", "source_data", "prompt_id",
             "workflow_run_id", "interaction_id", "created_at")  # fmt: skip
    return {
        **{name: row[name] for name in shown},
        "provider_job_id": provider_job_for(caller, row.provider_job_id),
        "contents": [await content_document(each, caller, state) for each in row.contents],
    }


async def content_document(content: dict[str, Any], caller: Caller, state: State) -> dict[str, Any]:
    shown = ("content_id", "index", "media_type", "extension", "size_bytes")
    return {
        **{name: content[name] for name in shown},
        "url": await state.media_links.url(UUID(content["content_id"])),
        "provider_url": content["provider_url"] if caller.sees_everything else None,
    }


HANDLERS = [get_media, list_media, list_workflow_run_media]

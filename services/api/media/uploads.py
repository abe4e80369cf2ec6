"""Pictures that users bring, to begin with: kept as media of their own, which no task has made."""

import asyncio
import hashlib
import logging
import tempfile
from pathlib import Path
from typing import Any

from filetype.types import image
from litestar import Response, post
from litestar.datastructures import State

from windlass.services.api.access.auth import require_writer
from windlass.services.api.http.bodies import read_body, refuse_encodings
from windlass.services.api.http.errors import RETRY_AFTER_SECONDS, Problem
from windlass.services.api.tasks.handlers import Asked
from windlass.shared.errors import words_of
from windlass.shared.storage import MediaStorage, StorageError
from windlass.shared.store import uploads
from windlass.shared.store.uploads import Upload

log = logging.getLogger("api")

LARGEST_BYTES = 20_000_000
KINDS = (image.Png(), image.Jpeg(), image.Webp(), image.Gif())
TAKEN = "image/"
BEGINNING_BYTES = 8192


@post("/media", status_code=201, request_max_body_size=LARGEST_BYTES, takes=TAKEN)
async def upload_media(request: Asked, state: State) -> Response[dict[str, Any]]:
    """Keeps a picture, sent as it is, as yours: its `content_id` can be the `source_image` of a media task."""
    require_writer(request.user)
    refuse_other_types(request.headers.get("content-type", ""))
    refuse_encodings(request.headers.get("content-encoding"))
    content = await read_body(request, state.settings, LARGEST_BYTES)
    upload = described(content)
    await store(state.storage, upload, content)
    await uploads.keep(state.pool, upload, user_id=request.user.user_id)
    document = {
        "content_id": upload.content_id,
        "media_type": upload.media_type,
        "extension": upload.extension,
        "size_bytes": upload.size_bytes,
        "url": await state.media_links.url(upload.content_id),
    }
    return Response(document, status_code=201, headers={"Location": f"/api/v1/media/{upload.content_id}"})


def refuse_other_types(declared: str) -> None:
    kind = declared.partition(";")[0].strip().lower()
    if not kind.startswith(TAKEN):
        detail = f"the body is declared as {kind[:100] or 'nothing'}; send a picture as it is, with its Content-Type"
        raise Problem(415, "unsupported-media-type", detail, headers={"Accept": "image/png, image/jpeg, image/webp"})


def described(content: bytes) -> Upload:
    """What it is, by its first bytes, whatever it was called."""
    beginning = bytearray(content[:BEGINNING_BYTES])
    kind = next((each for each in KINDS if each.match(beginning)), None)
    if kind is None:
        raise Problem(422, "not-a-picture", "the body is no PNG, JPEG, WebP or GIF")
    digest = hashlib.sha256(content).hexdigest()
    return Upload.of(media_type=kind.mime, extension=kind.extension, size_bytes=len(content), sha256=digest)


async def store(storage: MediaStorage, upload: Upload, content: bytes) -> None:
    """Before its row is written: what a row names is there."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "picture"
        await asyncio.to_thread(path.write_bytes, content)
        try:
            await storage.put(upload.place, path)
        except StorageError as error:
            log.warning("a picture could not be stored: %s", words_of(error))
            headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
            detail = "the media storage cannot be reached at the moment"
            raise Problem(503, "storage-unavailable", detail, headers=headers) from error


HANDLERS = [upload_media]

"""Files of an attempt's own making: safe in the media storage, and kept once, however often they are made."""

import hashlib
import mimetypes
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from windlass.shared.actors.attempt.faces import Data
from windlass.shared.errors import InvalidInput, ResultTooLarge
from windlass.shared.metrics.providers import MEDIA_BYTES
from windlass.shared.storage import MediaStorage, claim_directory, open_storage
from windlass.shared.store.kept_files import OwnFile, keep_file

if TYPE_CHECKING:
    from windlass.services.actors.worker.context.context import Context

MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9.+-]{0,60}/[a-z0-9][a-z0-9.+-]{0,100}")
UNKNOWN = "application/octet-stream"


class StoredFiles:
    """One attempt's. Called on a thread, which it blocks."""

    def __init__(self, context: "Context") -> None:
        self._context = context
        self._storage: MediaStorage | None = None

    def store(self, data: Data, media_type: str | None) -> str:
        context = self._context
        if self._storage is None:
            storage = open_storage(context.settings)
            context.ask(claim_directory, storage)
            self._storage = storage
        with self._at_a_path(data) as path:
            file = self._described(path, data, media_type)
            context.run(self._storage.put(file.place, path))
        if not context.ask(keep_file, context.task, file):
            context.stop("lost")
        context.check()
        MEDIA_BYTES.labels(context.task.provider).inc(file.size_bytes)
        return str(file.content_id)

    @contextmanager
    def _at_a_path(self, data: Data) -> Iterator[Path]:
        if not isinstance(data, bytes):
            yield Path(data)
            return
        self._refuse_large(len(data))
        below = self._context.settings.data_dir / "downloads"
        below.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=below) as directory:
            path = Path(directory) / "data"
            path.write_bytes(data)
            yield path

    def _described(self, path: Path, data: Data, media_type: str | None) -> OwnFile:
        size = path.stat().st_size
        self._refuse_large(size)
        if media_type is None:
            media_type = UNKNOWN if isinstance(data, bytes) else mimetypes.guess_type(path.name)[0] or UNKNOWN
        if not MEDIA_TYPE.fullmatch(media_type):
            raise InvalidInput(f"{media_type[:80]!r} is no media type; give one as `image/png`")
        with path.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        extension = (mimetypes.guess_extension(media_type) or ".bin").lstrip(".")
        return OwnFile.of(self._context.task_id, digest, size, media_type, extension)

    def _refuse_large(self, size: int) -> None:
        if size > (most := self._context.settings.largest_media_bytes):
            message = f"the file has {size:,} bytes, and {most:,} can be kept"
            raise ResultTooLarge(message, size_bytes=size, limit_bytes=most)

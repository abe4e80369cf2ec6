"""A directory is storage for one machine: processes of one database on another directory would miss its files."""

import asyncio
import os
import secrets as random_bytes
from contextlib import suppress
from pathlib import Path

from windlass.shared.db import Database
from windlass.shared.storage.durability import flush
from windlass.shared.storage.errors import UnusableStorage
from windlass.shared.storage.files import MediaStorage
from windlass.shared.store.access import secrets

MARKER = ".windlass-media"
SECRET_NAME = "media-directory"  # noqa: S105 - the name of one
ID_BYTES = 16


async def claim_directory(db: Database, storage: MediaStorage) -> None:
    """What every process that uses media calls as it starts; raises `UnusableStorage` where it must not go on.

    The directory holds a file with a random id, and the database the same id. The file is written first: whoever dies
    between the two leaves a directory that the next one takes over.
    """
    if storage.directory is None:
        return
    claimed = await secrets.get(db, SECRET_NAME)
    found = await asyncio.to_thread(_marker, storage.directory, write=claimed is None)
    if claimed is None:
        claimed = await secrets.ensure(db, SECRET_NAME, found)
    if claimed != found:
        raise UnusableStorage(
            f"{storage.directory} is not the media directory that this database's other processes use. Give all of "
            "them one shared volume, or a bucket, in WINDLASS_MEDIA_STORAGE (file:///path or s3://bucket/prefix). If "
            f"the directory has moved, its file {MARKER} has to move along; if it is lost for good, delete the row "
            f"{SECRET_NAME!r} of server_secrets"
        )


def _marker(directory: Path, *, write: bool) -> bytes | None:
    """The directory's id; where it has none, a new one if it is to have one."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / MARKER
        if write and not path.exists():
            _write(path)
        return bytes.fromhex(path.read_text()) if path.exists() else None
    except OSError as error:
        # An `OSError` would be taken for Postgres being away, and waited for.
        raise UnusableStorage(f"the media directory {directory} cannot be used: {error}") from error
    except ValueError as error:
        raise UnusableStorage(f"{directory / MARKER} does not hold an id: is it somebody else's file?") from error


def _write(path: Path) -> None:
    """Whole or not at all, and only once: of two that write at the same moment, both find the first one's."""
    draft = path.with_name(f"{MARKER}-{random_bytes.token_hex(4)}")
    draft.write_text(random_bytes.token_bytes(ID_BYTES).hex())
    try:
        flush(draft)
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
    flush(path.parent)
    flush(path.parent.parent)

"""Media files under names that never change their meaning, whatever holds them."""

import asyncio
import hashlib
import mmap
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import ObjectStore

from windlass.shared.errors import words_of
from windlass.shared.storage.durability import settle
from windlass.shared.storage.errors import MissingMedia, PlaceTaken, StorageUnavailable
from windlass.shared.storage.places import checked, is_place

PIECE_BYTES = 1_000_000
"""What is read at a time. Each piece is a request of its own: a reader may take as long as it likes between two."""
CALL_SECONDS = 30.0
PUT_SECONDS = 300.0

T = TypeVar("T")


class MediaStorage:
    """`directory` is where the files are when they are on this machine's own disk, else none."""

    def __init__(self, connect: Callable[[], ObjectStore], *, directory: Path | None = None) -> None:
        self._connect = connect
        self.directory = directory

    async def put(self, place: str, file: Path) -> None:
        """Durable when it returns. The same file again is fine; another one under the same name raises `PlaceTaken`."""
        try:
            creating = obstore.put_async(self._store, checked(place), _contents(file), mode="create")
            await _answer(creating, place, PUT_SECONDS)
        except AlreadyExistsError:
            if not await self._holds(place, file):
                raise PlaceTaken(f"there is another file at {place} already") from None
        if self.directory is not None:
            await asyncio.to_thread(settle, self.directory / place, self.directory)

    async def read(self, place: str, start: int, end: int) -> AsyncGenerator[bytes, None]:
        """The bytes from `start` up to `end`, piece by piece; never fewer of them."""
        checked(place)
        for first in range(start, end, PIECE_BYTES):
            behind = min(first + PIECE_BYTES, end)
            piece = await _answer(obstore.get_range_async(self._store, place, start=first, end=behind), place)
            if len(piece) != behind - first:
                raise MissingMedia(f"the file at {place} ends before byte {behind}")
            yield piece.to_bytes()

    async def size(self, place: str) -> int:
        return int((await _answer(obstore.head_async(self._store, checked(place)), place))["size"])

    async def places(self, prefix: str = "") -> AsyncGenerator[str, None]:
        """Every file at or below a prefix, which is a whole part of names, as `{generation_id}` is."""
        pages = obstore.list(self._store, checked(prefix) if prefix else None)
        while (page := await _answer(anext(pages, None), prefix)) is not None:
            for found in page:
                if is_place(found["path"]):
                    yield found["path"]

    async def remove(self, place: str) -> None:
        """Nothing is there afterwards, whether or not something was there before."""
        try:
            await _answer(obstore.delete_async(self._store, checked(place)), place)
        except MissingMedia:
            return

    @cached_property
    def _store(self) -> ObjectStore:
        """Connected when it is first used: who only opens a storage touches no disk."""
        try:
            return self._connect()
        except (BaseError, OSError, ValueError) as error:
            raise StorageUnavailable(_first_line(error)) from error

    async def _holds(self, place: str, file: Path) -> bool:
        stored = hashlib.sha256()
        async for piece in self.read(place, 0, await self.size(place)):
            stored.update(piece)
        return stored.digest() == await asyncio.to_thread(_digest, file)


async def _answer(call: Awaitable[T], place: str, seconds: float = CALL_SECONDS) -> T:
    """Waits for the library, and says what it complains about in our own words."""
    try:
        async with asyncio.timeout(seconds):
            return await call
    except AlreadyExistsError:
        raise
    except FileNotFoundError as error:
        raise MissingMedia(f"there is no file at {place}") from error
    except TimeoutError as error:
        raise StorageUnavailable(f"no answer about {place} within {seconds:g} s") from error
    except (BaseError, OSError) as error:
        raise StorageUnavailable(_first_line(error)) from error


def _contents(file: Path) -> mmap.mmap | bytes:
    """Mapped, not read: names that may not exist yet are written in one request, and the file may be large."""
    with file.open("rb") as opened:
        return mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) if file.stat().st_size else b""


def _digest(file: Path) -> bytes:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").digest()


def _first_line(error: Exception) -> str:
    """The library adds pages about how it came to it."""
    return words_of(error).splitlines()[0]

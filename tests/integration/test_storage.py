"""Media files in a directory and in a bucket: the same promises, on a real disk and against a real S3 server."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.s3.server import an_s3_server, make_bucket
from tests.support.engine.media import put
from windlass.services.laptop.ports import free_port
from windlass.shared.settings import Settings
from windlass.shared.storage import (
    MediaStorage,
    MissingMedia,
    PlaceTaken,
    StorageUnavailable,
    UnusableStorage,
    open_storage,
)
from windlass.shared.storage.files import PIECE_BYTES

PLACE = "0190a/1-0.png"
BACKSLASH, NUL = chr(92), chr(0)


@pytest.fixture(scope="module")
def s3_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch, an_s3_server(tmp_path_factory.mktemp("s3")) as url:
        patch.setenv("AWS_ACCESS_KEY_ID", "somebody")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "something")
        make_bucket(url, "media")
        yield url


@pytest.fixture(params=["directory", "bucket"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> MediaStorage:
    """An empty one."""
    if request.param == "directory":
        return at(f"file://{tmp_path}/files%20here")
    return at(f"s3://media/of/{uuid4()}?endpoint={request.getfixturevalue('s3_url')}&region=eu-central-1")


def at(url: str) -> MediaStorage:
    return open_storage(Settings(media_storage=url))


def running(test: Callable[[MediaStorage], Coroutine[Any, Any, None]]) -> Callable[[MediaStorage], None]:
    def run(storage: MediaStorage) -> None:
        asyncio.run(test(storage))

    return run


async def everything(storage: MediaStorage, place: str = PLACE) -> bytes:
    return b"".join([piece async for piece in storage.read(place, 0, await storage.size(place))])


@running
async def test_what_is_put_is_there_whole_and_in_parts(storage: MediaStorage) -> None:
    data = os.urandom(2 * PIECE_BYTES + 345)
    await put(storage, PLACE, data)
    assert await storage.size(PLACE) == len(data)
    assert await everything(storage) == data
    for start, end in ((0, 1), (10, 20), (PIECE_BYTES - 1, PIECE_BYTES + 1), (len(data) - 3, len(data)), (5, 5)):
        assert b"".join([piece async for piece in storage.read(PLACE, start, end)]) == data[start:end]


@running
async def test_it_is_read_in_pieces_of_bounded_size(storage: MediaStorage) -> None:
    await put(storage, PLACE, bytes(2 * PIECE_BYTES + 1))
    sizes = [len(piece) async for piece in storage.read(PLACE, 0, 2 * PIECE_BYTES + 1)]
    assert sizes == [PIECE_BYTES, PIECE_BYTES, 1]


@running
async def test_a_name_never_changes_its_meaning(storage: MediaStorage) -> None:
    await put(storage, PLACE, b"first")
    await put(storage, PLACE, b"first")
    for other in (b"other", b"first and more", b""):
        with pytest.raises(PlaceTaken, match=PLACE):
            await put(storage, PLACE, other)
    assert await everything(storage) == b"first"


@running
async def test_an_empty_file_is_a_file(storage: MediaStorage) -> None:
    await put(storage, PLACE, b"")
    await put(storage, PLACE, b"")
    assert (await storage.size(PLACE), await everything(storage)) == (0, b"")


@running
async def test_what_is_not_there_is_missing(storage: MediaStorage) -> None:
    with pytest.raises(MissingMedia, match="0190a/none"):
        await storage.size("0190a/none")
    with pytest.raises(MissingMedia, match="0190a/none"):
        await anext(storage.read("0190a/none", 0, 1))
    await put(storage, PLACE, b"short")
    with pytest.raises(MissingMedia, match="ends before byte 10"):
        await anext(storage.read(PLACE, 0, 10))


@running
async def test_places_are_listed_below_a_prefix_and_can_be_removed(storage: MediaStorage) -> None:
    for place in (PLACE, "0190a/1-1.png", "0190ab/1-0.mp4"):
        await put(storage, place, b"x")
    assert {each async for each in storage.places("0190a")} == {PLACE, "0190a/1-1.png"}
    assert {each async for each in storage.places()} == {PLACE, "0190a/1-1.png", "0190ab/1-0.mp4"}
    assert [each async for each in storage.places("nothing")] == []
    await storage.remove(PLACE)
    await storage.remove(PLACE)
    assert {each async for each in storage.places("0190a")} == {"0190a/1-1.png"}


@pytest.mark.parametrize(
    "name",
    [
        "", "/etc/passwd", "..", "a/../b", "a/..", "a//b", "a/", "./a", ".marker", f"a{BACKSLASH}b", f"a{NUL}b", "a b",
        "a%2f..", "\u00e4", "a/" * 300 + "a",
    ],
)  # fmt: skip
def test_a_name_that_could_lead_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    storage, file = at(f"file://{tmp_path}/media"), tmp_path / "file"
    file.write_bytes(b"x")

    async def use() -> None:
        for call in (storage.put, lambda name, _: storage.size(name), lambda name, _: storage.remove(name)):
            with pytest.raises(ValueError, match="cannot be the name"):
                await call(name, file)
        with pytest.raises(ValueError, match="cannot be the name"):
            await anext(storage.read(name, 0, 1))

    asyncio.run(use())
    assert not list(tmp_path.rglob("*.png"))


def test_a_file_and_every_directory_above_it_are_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[Path] = []
    flush = os.fsync

    def watched(descriptor: int) -> None:
        flushed.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    root = tmp_path / "media"
    asyncio.run(put(at(f"file://{root}"), PLACE, b"x"))
    assert flushed == [root / PLACE, root / "0190a", root]


def test_by_default_files_are_in_the_data_directory(tmp_path: Path) -> None:
    asyncio.run(put(open_storage(Settings(data_dir=tmp_path)), PLACE, b"x"))
    assert (tmp_path / "media" / PLACE).read_bytes() == b"x"


def test_who_only_opens_a_storage_touches_no_disk(tmp_path: Path) -> None:
    open_storage(Settings(data_dir=tmp_path / "data"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "url",
    [
        "/path", "file://elsewhere/path", "file:relative", "file:///a?b=c", "s3:///prefix", "gs://bucket", "https://x/y",
        "s3://bucket?colour=red", "s3://somebody:something@bucket",
        "s3://bucket?access_key_id=somebody&secret_access_key=something",
    ],
)  # fmt: skip
def test_a_storage_that_is_not_understood_is_refused_without_repeating_its_secrets(url: str) -> None:
    with pytest.raises(UnusableStorage, match="WINDLASS_MEDIA_STORAGE") as refused:
        at(url)
    assert "something" not in str(refused.value)


@pytest.mark.usefixtures("s3_url")
def test_a_storage_that_does_not_answer_is_told_from_a_missing_file() -> None:
    for url in (f"s3://media?endpoint=http://127.0.0.1:{free_port()}", "file:///proc/no-such-directory"):
        with pytest.raises(StorageUnavailable):
            asyncio.run(at(url).size(PLACE))


@pytest.mark.usefixtures("s3_url")
def test_a_bucket_s_keys_are_scrubbed_from_everything_that_is_written() -> None:
    assert "something" in Settings().secrets()

"""Processes of one database share one media directory: one that would miss the others' files does not start."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import a_database
from tests.support.an_api import an_api
from tests.support.engine.media import a_content, generated
from tests.support.engine.store import Engine, an_engine
from tests.support.installation import START_SECONDS, Windlass, answers, start
from tests.support.servers.private_servers import Servers
from windlass.services.laptop.ports import free_port
from windlass.shared.settings import Settings
from windlass.shared.storage import UnusableStorage, claim_directory, open_storage
from windlass.shared.storage.directory import MARKER

A_BUCKET = "s3://bucket/prefix?endpoint=http://127.0.0.1:9"


@pytest.fixture(scope="module")
def api(servers: Servers, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Windlass]:
    with an_api(servers, migrated_template, tmp_path_factory.mktemp("first")) as windlass:
        yield windlass


def refused(api: Windlass, storage: str, directory: Path) -> tuple[int, list[str]]:
    """One more api of the same database that ends by itself: its exit code, and what it alone said."""
    own = {"WINDLASS_PORT": str(free_port()), "WINDLASS_MEDIA_STORAGE": storage}
    with (directory / "said").open("wb") as said:
        process = start("windlass.services.api", {**api.environment, **own}, said.fileno())
    try:
        code = process.wait(timeout=START_SECONDS)
    finally:
        process.kill()
    return code, (directory / "said").read_text().splitlines()


def test_an_api_on_another_directory_ends_and_says_what_to_do(api: Windlass, tmp_path: Path) -> None:
    code, said = refused(api, f"file://{tmp_path}/another", tmp_path)
    assert code == 1
    (line,) = [line for line in said if "listening on" not in line]
    assert f"{tmp_path}/another is not the media directory" in line
    for way_out in ("shared volume", "s3://bucket/prefix", MARKER):
        assert way_out in line
    assert answers(api.client), "the others are not disturbed"


def test_an_api_on_the_same_directory_or_on_a_bucket_starts(api: Windlass) -> None:
    assert answers(api.start_api())
    assert answers(api.start_api(WINDLASS_MEDIA_STORAGE=A_BUCKET))


def test_a_storage_that_cannot_be_used_ends_an_api_too(api: Windlass, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for storage, complaint in (
        (f"file://{tmp_path}/file", "cannot be used"),
        ("ftp://elsewhere", "neither file:///path nor s3://bucket/prefix"),
    ):
        code, said = refused(api, storage, tmp_path)
        assert code == 1
        assert len([line for line in said if complaint in line]) == 1


def test_while_a_bucket_does_not_answer_its_files_are_away_and_not_missing(api: Windlass) -> None:
    keys = {"AWS_ACCESS_KEY_ID": "somebody", "AWS_SECRET_ACCESS_KEY": "something"}
    client = api.start_api(WINDLASS_MEDIA_STORAGE=A_BUCKET, **keys)
    file = a_content(b"x")

    async def store() -> None:
        async with an_engine(api.environment["WINDLASS_DATABASE_URL"]) as engine:
            storage = open_storage(Settings(media_storage=api.environment["WINDLASS_MEDIA_STORAGE"]))
            await generated(engine, [file], storage=storage)

    asyncio.run(store())
    assert api.client.http.get(f"/api/v1/media/{file.content_id}").content == b"x"
    answer = client.http.get(f"/api/v1/media/{file.content_id}")
    assert (answer.status_code, answer.json()["code"]) == (503, "storage-unavailable")
    assert int(answer.headers["Retry-After"]) > 0


def on_a_new_database(servers: Servers, template: str, test: Callable[[Engine], Awaitable[None]]) -> None:
    async def run(url: str) -> None:
        async with an_engine(url) as engine:
            await test(engine)

    with a_database(servers, template) as url:
        asyncio.run(run(url))


async def claim(engine: Engine, directory: Path) -> None:
    await claim_directory(engine.pool, open_storage(Settings(media_storage=f"file://{directory}")))


def test_of_many_that_start_at_once_those_on_one_directory_win(
    servers: Servers, migrated_template: str, tmp_path: Path
) -> None:
    async def start(engine: Engine) -> None:
        places = [tmp_path / ("here" if number % 2 else "there") for number in range(10)]
        ends = await asyncio.gather(*(claim(engine, place) for place in places), return_exceptions=True)
        started = {place for place, end in zip(places, ends, strict=True) if end is None}
        assert len(started) == 1
        assert sum(isinstance(end, UnusableStorage) for end in ends) == 5
        await claim(engine, started.pop())

    on_a_new_database(servers, migrated_template, start)


def test_a_directory_without_its_marker_is_another_one(
    servers: Servers, migrated_template: str, tmp_path: Path
) -> None:
    """A volume that is not mounted looks like an empty directory."""

    async def start(engine: Engine) -> None:
        await claim(engine, tmp_path)
        marker = tmp_path / MARKER
        kept = marker.read_text()
        marker.unlink()
        with pytest.raises(UnusableStorage, match="not the media directory"):
            await claim(engine, tmp_path)
        assert not marker.exists()
        marker.write_text("not an id")
        with pytest.raises(UnusableStorage, match="does not hold an id"):
            await claim(engine, tmp_path)
        marker.write_text(kept)
        await claim(engine, tmp_path)

    on_a_new_database(servers, migrated_template, start)
    assert [path.name for path in tmp_path.iterdir()] == [MARKER]


def test_who_died_between_directory_and_database_leaves_a_directory_that_can_be_taken_over(
    servers: Servers, migrated_template: str, tmp_path: Path
) -> None:
    async def start(engine: Engine) -> None:
        await claim(engine, tmp_path)
        await engine.sql("DELETE FROM server_secrets")
        await claim(engine, tmp_path)
        with pytest.raises(UnusableStorage):
            await claim(engine, tmp_path / "another")

    on_a_new_database(servers, migrated_template, start)

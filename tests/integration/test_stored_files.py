"""Files that attempts make: safe, their user's, and kept once, however often an attempt comes to them."""

import asyncio
import hashlib
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.support.engine.attempting import Worker, a_worker
from tests.support.engine.store import empty_database
from tests.support.engine.store_from_threads import ask
from tests.support.servers.private_servers import Servers
from windlass.services.actors.worker.context.async_context import AsyncAttempt
from windlass.services.actors.worker.context.context import Context, Stopped
from windlass.shared.errors import InvalidInput, ResultTooLarge
from windlass.shared.store import orders
from windlass.shared.store.orders import OwnedContent


@pytest.fixture
def worker(servers: Servers, migrated_template: str, tmp_path: Path) -> Iterator[Worker]:
    with a_worker(empty_database(servers.database_url, migrated_template), tmp_path) as worker:
        yield worker


@pytest.fixture
def attempt(worker: Worker) -> Context:
    return worker.claim(ask(worker.engine_url, lambda engine: engine.submit()))


def content(worker: Worker, content_id: str) -> OwnedContent:
    row = ask(worker.engine_url, lambda engine: orders.content(engine.pool, UUID(content_id)))
    assert row is not None
    return row


def files_of(worker: Worker) -> list[Path]:
    return sorted(path for path in (worker.settings.data_dir / "media").glob("*/*") if path.is_file())


def test_bytes_become_a_file_of_the_task_s_user(worker: Worker, attempt: Context) -> None:
    row = content(worker, attempt.store_file(b"hello", media_type="text/plain"))
    assert (row.user_id, row.task_id, row.media_type, row.size_bytes) == ("ann", attempt.task_id, "text/plain", 5)
    assert row.sha256 == hashlib.sha256(b"hello").hexdigest()
    assert (worker.settings.data_dir / "media" / row.place).read_bytes() == b"hello"
    assert list((worker.settings.data_dir / "downloads").iterdir()) == [], "no draft is left"


def test_the_file_at_a_path_is_kept_and_named_by_its_kind(worker: Worker, attempt: Context, tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(b"picture")
    row = content(worker, attempt.store_file(path))
    assert (row.media_type, row.extension) == ("image/png", "png")
    assert path.exists()


def test_the_same_file_again_is_kept_once_and_another_beside_it(worker: Worker, attempt: Context) -> None:
    first = attempt.store_file(b"one")
    again = worker.take_back(attempt)
    assert again.store_file(b"one") == first
    assert again.store_file(b"two") != first
    assert len(files_of(worker)) == 2
    other = worker.claim(ask(worker.engine_url, lambda engine: engine.submit(user_id="bob")))
    assert other.store_file(b"one") != first, "another's file is another file"


def test_an_attempt_that_lost_its_claim_keeps_nothing(worker: Worker, attempt: Context) -> None:
    owner = worker.take_back(attempt)
    with pytest.raises(Stopped):
        attempt.store_file(b"one")
    count = "SELECT count(*) FROM contents"
    assert ask(worker.engine_url, lambda engine: engine.pool.fetchval(count)) == 0
    owner.store_file(b"one")
    assert len(files_of(worker)) == 1, "what the lost one has left is the owner's now"


def test_what_is_too_large_or_no_media_type_is_refused(worker: Worker, attempt: Context) -> None:
    object.__setattr__(worker.settings, "largest_media_bytes", 10)
    with pytest.raises(ResultTooLarge, match="the file has 11 bytes, and 10 can be kept"):
        attempt.store_file(b"x" * 11)
    with pytest.raises(InvalidInput, match="no media type"):
        attempt.store_file(b"x", media_type="text\r\nX-Evil: 1")
    assert files_of(worker) == []


def test_an_async_attempt_keeps_files_too(worker: Worker, attempt: Context) -> None:
    content_id = asyncio.run(AsyncAttempt(attempt).store_file(b"hello", media_type="text/plain"))
    assert content(worker, content_id).size_bytes == 5

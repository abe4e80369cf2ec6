"""Files that came of tasks, over HTTP: by key or by signed url, whole or in part, and never half an answer."""

import asyncio
import hashlib
import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support.an_api import new_key
from tests.support.engine.media import File, a_content, generated
from tests.support.engine.store import Engine
from tests.support.installation import KEY, NOBODY, Windlass
from tests.support.media_api import address, api, storage_of, without_key
from tests.support.stream_api import ANN, with_workers
from tests.support.waiting import wait_until
from windlass import AsyncClient, Client
from windlass.shared.settings import Settings
from windlass.shared.signing import MEDIA_URLS, media_url
from windlass.shared.store import orders
from windlass.shared.store.access import secrets

__all__ = ["api"]

DATA = bytes(range(256)) * 4
LARGE = 40_000_000


async def a_file(api: Windlass, engine: Engine, data: bytes = DATA, **fields: str) -> File:
    content = a_content(data, **fields)
    await generated(engine, [content], storage=storage_of(api))
    return content


async def signed(api: Windlass, engine: Engine, file: File, *, at: datetime | None = None) -> str:
    """As the media actor makes it, which knows the settings and the secret."""
    secret = await secrets.ensure(engine.pool, MEDIA_URLS)
    return media_url(Settings(port=api.port), secret, file.content_id, at or datetime.now(UTC))


async def path_of(api: Windlass, engine: Engine, file: File) -> Path:
    row = await orders.content(engine.pool, file.content_id)
    directory = storage_of(api).directory
    assert row is not None
    assert directory is not None
    return directory / str(row["place"])


@with_workers
async def test_a_file_is_shown_as_what_its_row_says_and_can_do_no_harm(api: Windlass, engine: Engine) -> None:
    file = await a_file(api, engine, media_type="image/webp", extension="webp")
    answer = api.client.with_key(ANN).http.get(address(api, file.content_id), headers={"Accept": "text/html"})
    assert (answer.status_code, answer.content) == (200, DATA)
    of_every_answer = {"date", "server", "windlass-build", "x-request-id"}
    assert {name: answer.headers[name] for name in answer.headers if name not in of_every_answer} == {
        "content-type": "image/webp",
        "content-length": str(len(DATA)),
        "content-disposition": f'inline; filename="{file.content_id}.webp"',
        "content-security-policy": "sandbox; default-src 'none'",
        "x-content-type-options": "nosniff",
        "cache-control": "private, max-age=31536000, immutable",
        "vary": "Authorization, Cookie",
        "etag": f'"{hashlib.sha256(DATA).hexdigest()}"',
        "accept-ranges": "bytes",
    }


@with_workers
async def test_the_client_fetches_a_file(api: Windlass, engine: Engine) -> None:
    file = await a_file(api, engine)
    with Client(api.url, ANN) as client:
        assert client.media(str(file.content_id)) == DATA
    async with AsyncClient(api.url, ANN) as client_that_awaits:
        assert await client_that_awaits.media(str(file.content_id)) == DATA


@with_workers
async def test_a_signed_url_shows_one_file_without_a_key_until_it_expires(api: Windlass, engine: Engine) -> None:
    file, other = await a_file(api, engine), await a_file(api, engine, b"another")
    url = await signed(api, engine, file)
    answer = without_key(url)
    assert (answer.status_code, answer.content) == (200, DATA)
    assert without_key(url, "HEAD").status_code == 200

    long_ago = datetime.now(UTC) - timedelta(days=30)
    expired = without_key(await signed(api, engine, file, at=long_ago))
    assert (expired.status_code, expired.json()["code"]) == (403, "url-expired")
    assert "read its task" in expired.json()["detail"]

    query = urlsplit(url).query
    expires, signature = (part.partition("=")[2] for part in query.split("&"))
    wrong = [
        f"{address(api, other.content_id)}?{query}",
        f"{address(api, file.content_id)}?expires={int(expires) + 1}&signature={signature}",
        f"{address(api, file.content_id)}?expires={expires}&signature={signature[:-2]}xx",
        f"{address(api, file.content_id)}?expires={expires}",
        f"{address(api, file.content_id)}?signature={signature}",
        f"{address(api, file.content_id)}?expires=%00&signature=%C3%A9",
        f"{address(api, file.content_id)}?expires={expires}&signature={signature}=",
        f"{address(api, str(file.content_id).upper())}?expires={expires}&signature={signature}",
        f"{address(api, file.content_id.hex)}?expires={expires}&signature={signature}",
        f"{address(api, NOBODY)}?{query}",
    ]
    for each in wrong:
        refused = without_key(each)
        assert (refused.status_code, refused.json()["code"]) == (403, "invalid-signature"), each
    assert without_key(address(api, file.content_id)).status_code == 401


@with_workers
async def test_with_a_key_the_signature_does_not_matter(api: Windlass, engine: Engine) -> None:
    file = await a_file(api, engine)
    url = await signed(api, engine, file, at=datetime.now(UTC) - timedelta(days=30))
    assert without_key(url, Authorization=f"Bearer {KEY}").status_code == 200
    good = await signed(api, engine, file)
    assert without_key(good, Authorization=f"Bearer {KEY}x").status_code == 401
    tasks = await engine.submit()
    stray = f"{api.url}/api/v1/tasks/{tasks}?{urlsplit(good).query}"
    assert without_key(stray).status_code == 401, "a signed url opens nothing but media"


@with_workers
async def test_parts_of_a_file(api: Windlass, engine: Engine) -> None:
    file = await a_file(api, engine)
    url, size = await signed(api, engine, file), len(DATA)
    for asked, start, end in (("0-0", 0, 1), ("10-19", 10, 20), ("1000-", 1000, size), ("-24", 1000, size)):
        part = without_key(url, Range=f"bytes={asked}")
        assert (part.status_code, part.content) == (206, DATA[start:end])
        assert part.headers["content-range"] == f"bytes {start}-{end - 1}/{size}"
        assert part.headers["content-length"] == str(end - start)
    for asked in ("bytes=0-1,3-4", "lines=1-2", "bytes=9-1"):
        whole = without_key(url, Range=asked)
        assert (whole.status_code, whole.content) == (200, DATA)
        assert "content-range" not in whole.headers
    for asked in (f"bytes={size}-", "bytes=-0"):
        beyond = without_key(url, Range=asked)
        assert (beyond.status_code, beyond.json()["code"]) == (416, "range-not-satisfiable")
        assert beyond.headers["content-range"] == f"bytes */{size}"


@with_workers
async def test_a_client_that_has_the_file_is_not_sent_it_again(api: Windlass, engine: Engine) -> None:
    url = await signed(api, engine, await a_file(api, engine))
    etag = without_key(url).headers["etag"]
    unchanged = without_key(url, **{"If-None-Match": f'"old", {etag}'})
    assert (unchanged.status_code, unchanged.content, unchanged.headers["etag"]) == (304, b"", etag)
    assert without_key(url, **{"If-None-Match": '"old"'}).status_code == 200
    part = {"Range": "bytes=0-9"}
    assert without_key(url, **part, **{"If-Range": etag}).status_code == 206
    assert without_key(url, **part, **{"If-Range": '"old"'}).status_code == 200


@with_workers
async def test_head_says_what_get_would_without_the_file(api: Windlass, engine: Engine) -> None:
    url = await signed(api, engine, await a_file(api, engine))
    whole, head = without_key(url), without_key(url, "HEAD", Range="bytes=0-1")
    assert (head.status_code, head.content) == (200, b"")
    names = set(whole.headers) - {"date", "x-request-id"}
    assert {name: head.headers[name] for name in names} == {name: whole.headers[name] for name in names}
    assert api.client.with_key(ANN).http.head(address(api, NOBODY)).status_code == 404
    assert without_key(address(api, NOBODY), "HEAD").status_code == 401


@pytest.mark.parametrize("harm", ["removed", "cut short"])
def test_a_file_that_is_not_whole_is_an_error_and_not_half_an_answer(api: Windlass, harm: str) -> None:
    @with_workers
    async def ask(api: Windlass, engine: Engine) -> None:
        file = await a_file(api, engine)
        url, path = await signed(api, engine, file), await path_of(api, engine, file)
        if harm == "removed":
            path.unlink()
        else:
            os.truncate(path, 10)
        for headers in ({}, {"Range": "bytes=0-1"}):
            answer = without_key(url, **headers)
            assert (answer.status_code, answer.json()["code"]) == (500, "media-missing")
        assert without_key(url, "HEAD").status_code == 500
        assert str(file.content_id) in api.log()
        assert path.name in api.log()
        assert str(path) not in answer.text, "where files lie is the operator's to know"

    ask(api)


def ask_and_read_nothing(api: Windlass, url: str) -> socket.socket:
    """A client that has asked, and takes hardly anything."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", api.port))
    parts = urlsplit(url)
    client.sendall(f"GET {parts.path}?{parts.query} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    assert client.recv(15) == b"HTTP/1.1 200 OK"
    return client


def received(client: socket.socket) -> int:
    """How much comes until the connection ends, in whichever way."""
    total = 0
    try:
        while part := client.recv(65536):
            total += len(part)
    except ConnectionResetError:
        pass
    return total


@with_workers
async def test_clients_that_take_nothing_cost_little_memory_and_are_cut_off(api: Windlass, engine: Engine) -> None:
    url = await signed(api, engine, await a_file(api, engine, bytes(LARGE)))
    assert without_key(url, Range="bytes=0-1").status_code == 206, "everything that it needs is loaded"
    before = memory_of(api)
    clients = [ask_and_read_nothing(api, url) for _ in range(4)]
    try:
        wait_until("cut off", lambda: "ESTABLISHED" not in states_of(api, clients), seconds=120)
        assert memory_of(api) - before < LARGE / 2
        assert sum(map(received, clients)) < LARGE
    finally:
        for client in clients:
            client.close()
    assert without_key(url, Range="bytes=0-1").status_code == 206


@with_workers
async def test_a_file_that_is_lost_while_it_is_sent_breaks_the_connection(api: Windlass, engine: Engine) -> None:
    file = await a_file(api, engine, bytes(LARGE))
    url, path = await signed(api, engine, file), await path_of(api, engine, file)
    client = ask_and_read_nothing(api, url)
    try:
        os.truncate(path, 0)
        assert await asyncio.to_thread(received, client) < LARGE
    finally:
        client.close()
    wait_until("logged", lambda: "a file ended before its end" in api.log())


def memory_of(api: Windlass) -> int:
    pages = int(Path(f"/proc/{api.api.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def states_of(api: Windlass, clients: list[socket.socket]) -> set[str]:
    """Of the server's ends of these connections."""
    ports = {client.getsockname()[1] for client in clients}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    here = [row for row in rows if int(row[1].partition(":")[2], 16) == api.port]
    return {"ESTABLISHED" for row in here if int(row[2].partition(":")[2], 16) in ports and row[3] == "01"}


def test_a_picture_that_a_user_brings_is_theirs_to_begin_with(api: Windlass) -> None:
    ann, ben = (api.client.with_key(new_key(api.client, "user", name)) for name in ("ann", "ben"))
    picture = b"\x89PNG\r\n\x1a\n" + DATA
    sent = ann.http.post("/api/v1/media", content=picture, headers={"Content-Type": "image/jpeg"})
    assert sent.status_code == 201, sent.text
    kept = sent.json()
    assert (kept["media_type"], kept["extension"], kept["size_bytes"]) == ("image/png", "png", len(picture))
    assert sent.headers["location"] == f"/api/v1/media/{kept['content_id']}"
    shown = [ann.http.get(sent.headers["location"]), without_key(kept["url"])]
    assert [(each.status_code, each.content) for each in shown] == [(200, picture)] * 2
    assert ben.http.get(sent.headers["location"]).status_code == 404
    (listed,) = ann.http.get("/api/v1/media", params={"provider": "upload", "limit": 1}).json()["items"]
    assert (listed["task_id"], listed["operation"], listed["status"]) == (None, "upload", "completed")
    assert [each["content_id"] for each in listed["contents"]] == [kept["content_id"]]
    assert ben.http.get("/api/v1/media").json()["items"] == []


@pytest.mark.parametrize(
    ("body", "content_type", "status", "code"),
    [
        (b"<svg onload='alert(1)'/>", "image/svg+xml", 422, "not-a-picture"),
        (b"", "image/png", 422, "not-a-picture"),
        (b"\x89PNG\r\n\x1a\n", "application/json", 415, "unsupported-media-type"),
        (b"\x89PNG\r\n\x1a\n", "multipart/form-data; boundary=x", 415, "unsupported-media-type"),
        (b"\x89PNG" + bytes(20_000_000), "image/png", 413, "body-too-large"),
    ],
    ids=["svg", "nothing", "json", "form", "large"],
)
def test_what_is_no_picture_is_not_kept(api: Windlass, body: bytes, content_type: str, status: int, code: str) -> None:
    refused = api.client.http.post("/api/v1/media", content=body, headers={"Content-Type": content_type})
    assert (refused.status_code, refused.json()["code"]) == (status, code)


def test_a_browser_brings_a_picture_and_a_foreign_page_does_not(api: Windlass) -> None:
    with httpx.Client(
        base_url=api.url, timeout=60, trust_env=False, headers={"Sec-Fetch-Site": "same-origin"}
    ) as browser:
        browser.post("/api/v1/session", json={"key": KEY}).raise_for_status()
        for content_type, status in (("image/png", 201), ("text/plain", 403), ("application/json", 403)):
            picture = {"content": b"\x89PNG\r\n\x1a\n", "headers": {"Content-Type": content_type}}
            assert browser.post("/api/v1/media", **picture).status_code == status  # type: ignore[arg-type]


@with_workers
async def test_media_are_listed_newest_first_by_what_they_belong_to(api: Windlass, engine: Engine) -> None:
    labels = [("run-a", "one"), ("run-a", "two"), ("run-b", "one")]
    ids = []
    for run, interaction in labels:
        task = {"user_id": "lena", "workflow_run_id": run, "interaction_id": interaction}
        content = a_content(DATA)
        await generated(engine, [content], storage=storage_of(api), task=task)
        ids.append(str(content.content_id))
    lena = api.client.with_key(new_key(api.client, "user", "lena")).http

    def found(**asked: str) -> list[int]:
        items = lena.get("/api/v1/media", params=asked).raise_for_status().json()["items"]
        return [ids.index(each["contents"][0]["content_id"]) for each in items]

    assert found() == [2, 1, 0]
    assert found(workflow_run_id="run-a") == [1, 0]
    assert found(interaction_id="one") == [2, 0]
    assert found(interaction_id="one", workflow_run_id="run-b") == [2]
    assert found(provider="nobody") == []
    assert found(created_after="2001-01-01T00:00:00") == [2, 1, 0]
    assert found(created_after=(datetime.now(UTC) + timedelta(minutes=1)).isoformat()) == []
    first = lena.get("/api/v1/media", params={"limit": 2}).json()
    assert found(limit="2", cursor=first["next_cursor"]) == [0]
    assert lena.get("/api/v1/media?workflow_run_id=a%00b").status_code == 422

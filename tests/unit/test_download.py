"""Downloads over real sockets: what is kept, what is refused, and that nothing is left of what was refused."""

import asyncio
import hashlib
import io
from collections.abc import Callable
from ipaddress import ip_network
from pathlib import Path

import pytest
from PIL import Image

from tests.support.providers.small_server import HANG, Reply, Request, answer, on_a_loop, serving
from windlass.shared.errors import (
    Forbidden,
    InvalidInput,
    NetworkTimeout,
    RateLimited,
    ResultTooLarge,
    ServiceUnavailable,
    TaskError,
)
from windlass.shared.providers.http.addresses import Allowances
from windlass.shared.providers.http.download import Downloaded, download
from windlass.shared.providers.http.network import open_client
from windlass.shared.providers.source import SourceUnavailable, fetch_source

LOOPBACK = Allowances((ip_network("127.0.0.1"),))
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nTransfer-Encoding: chunked\r\n\r\n"


def picture(kind: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (40, 30), "teal").save(file, kind)
    return file.getvalue()


PNG = picture("png")
MP4 = b"\x00\x00\x00\x20ftypisom\x00\x00\x02\x00isomiso2avc1mp41" + bytes(500)
MOV = b"\x00\x00\x00\x14ftypqt  \x00\x00\x02\x00qt  " + bytes(500)
WEBM = b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\xf7\x81\x01\x42\xf2\x81\x04\x42\xf3\x81\x08\x42\x82\x84webm" + bytes(
    500
)


def files_in(directory: Path) -> list[Path]:
    return list(directory.iterdir())


async def fetched(
    reply: Reply | Callable[[Request], Reply], to: Path, *, largest: int = 1_000_000, seconds: float = 10
) -> Downloaded:
    def replying(request: Request) -> Reply:
        return reply(request) if callable(reply) else reply

    async with serving(replying) as server, open_client(LOOPBACK, timeout_seconds=60) as http:
        return await download(http, f"{server.url}/a?signature=s3cret", to, largest_bytes=largest, seconds=seconds)


async def error_of(reply: Reply | Callable[[Request], Reply], directory: Path, **limits: float) -> TaskError:
    with pytest.raises(TaskError) as caught:
        await fetched(reply, directory / "file", **limits)  # type: ignore[arg-type]
    assert files_in(directory) == []
    assert "s3cret" not in caught.value.message
    return caught.value


@pytest.mark.parametrize(
    ("content", "label", "media_type", "extension"),
    [
        (PNG, "image/png", "image/png", "png"),
        (picture("jpeg"), "image/jpeg; charset=binary", "image/jpeg", "jpg"),
        (picture("webp"), "application/octet-stream", "image/webp", "webp"),
        (picture("gif"), "IMAGE/GIF", "image/gif", "gif"),
        (picture("webp"), "image/png", "image/webp", "webp"),
        (MP4, "video/mp4", "video/mp4", "mp4"),
        (WEBM, "video/webm", "video/webm", "webm"),
        (MOV, "", "video/quicktime", "mov"),
    ],
)
@on_a_loop
async def test_a_file_is_what_its_content_is(
    tmp_path: Path, content: bytes, label: str, media_type: str, extension: str
) -> None:
    path = tmp_path / "file"
    found = await fetched(answer(200, content, content_type=label), path)
    assert path.read_bytes() == content
    assert found == Downloaded(len(content), hashlib.sha256(content).hexdigest(), media_type, extension)


@pytest.mark.parametrize(
    ("content", "label"),
    [
        (b"<!doctype html><html><script>alert(1)</script></html>", "image/png"),
        (b'{"error": "expired"}', "application/json"),
        (b"", "image/png"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
        (b"%PDF-1.7 " + bytes(500), "image/png"),
        (PNG, "text/html"),
        (PNG, "video/mp4"),
        (MP4, "image/png"),
    ],
)
@on_a_loop
async def test_what_is_no_media_or_is_called_something_else_is_refused(
    tmp_path: Path, content: bytes, label: str
) -> None:
    error = await error_of(answer(200, content, content_type=label), tmp_path)
    # Transient: the file is fetched again, and nothing is ordered again.
    assert isinstance(error, ServiceUnavailable)
    assert "127.0.0.1" in error.message


@pytest.mark.parametrize(
    "reply",
    [
        answer(200, PNG + bytes(5000), content_type="image/png"),
        [b"HTTP/1.1 200 OK\r\nContent-Length: 900000000\r\n\r\n", HANG],
        [CHUNKED, *[b"400\r\n" + bytes(1024) + b"\r\n"] * 8, HANG],
        [b"HTTP/1.1 200 OK\r\n\r\n", *[bytes(1024)] * 8, HANG],
    ],
    ids=["said", "said and not sent", "chunked", "unsaid"],
)
@on_a_loop
async def test_more_than_may_be_kept_is_cut_off_while_it_comes(tmp_path: Path, reply: Reply) -> None:
    error = await error_of(reply, tmp_path, largest=4000)
    assert isinstance(error, ResultTooLarge)


@on_a_loop
async def test_exactly_as_much_as_may_be_kept_is_kept(tmp_path: Path) -> None:
    assert isinstance(await error_of(answer(200, PNG), tmp_path, largest=len(PNG) - 1), ResultTooLarge)
    assert (await fetched(answer(200, PNG), tmp_path / "file", largest=len(PNG))).size_bytes == len(PNG)


@pytest.mark.parametrize(
    "reply",
    [
        [b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n", PNG],
        [CHUNKED, b"400\r\n" + PNG[:40]],
        None,
    ],
    ids=["cut off", "cut off in a chunk", "drop"],
)
@on_a_loop
async def test_half_a_file_is_no_file(tmp_path: Path, reply: Reply) -> None:
    assert isinstance(await error_of(reply, tmp_path), NetworkTimeout)


@on_a_loop
async def test_a_file_that_does_not_come_to_an_end_in_time_is_given_up(tmp_path: Path) -> None:
    drops = [b"HTTP/1.1 200 OK\r\n\r\n", *[b"\x00", 0.02] * 1000]
    error = await error_of(drops, tmp_path, seconds=0.3)
    assert isinstance(error, NetworkTimeout)
    assert "0.3 s" in error.message


@on_a_loop
async def test_a_download_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    path, asked = tmp_path / "file", asyncio.Event()

    def reply(_: Request) -> Reply:
        asked.set()
        return [CHUNKED, b"400\r\n", PNG, HANG]

    async with serving(reply) as server, open_client(LOOPBACK, timeout_seconds=60) as http:
        work = asyncio.create_task(download(http, server.url, path, largest_bytes=10_000, seconds=10))
        await asked.wait()
        assert files_in(tmp_path) == [path]
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
    assert files_in(tmp_path) == []


@on_a_loop
async def test_a_file_that_is_there_already_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("somebody's")
    with pytest.raises(FileExistsError):
        await fetched(answer(200, PNG), tmp_path / "file")
    assert (tmp_path / "file").read_text() == "somebody's"


@pytest.mark.parametrize("status", [403, 404, 410, 500, 503])
@on_a_loop
async def test_a_file_that_is_not_there_may_be_there_later(tmp_path: Path, status: int) -> None:
    error = await error_of(answer(status, b"<Error>AccessDenied</Error>"), tmp_path)
    assert isinstance(error, ServiceUnavailable)
    assert error.details["status"] == status
    assert "AccessDenied" in error.message
    assert isinstance(await error_of(answer(429, b"", retry_after="9"), tmp_path), RateLimited)


def redirecting(times: int) -> Callable[[Request], bytes]:
    def reply(request: Request) -> bytes:
        hops = request.path.count("x")
        return answer(302, location=f"/{'x' * (hops + 1)}") if hops < times else answer(200, PNG)

    return reply


@on_a_loop
async def test_three_redirects_are_followed_and_not_a_fourth(tmp_path: Path) -> None:
    assert (await fetched(redirecting(3), tmp_path / "file")).media_type == "image/png"
    (tmp_path / "file").unlink()
    assert isinstance(await error_of(redirecting(4), tmp_path), ServiceUnavailable)


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data/",
        "https://169.254.169.254/latest/meta-data/",
        "http://127.0.0.2:{port}/",
        "http://[::ffff:127.0.0.2]:{port}/",
        "//127.0.0.2:{port}/",
        "http://93.184.216.34/plain.png",
        "file:///etc/passwd",
        "ftp://127.0.0.1/a.png",
    ],
)
@on_a_loop
async def test_a_redirect_leads_nowhere_that_the_first_address_could_not(tmp_path: Path, target: str) -> None:
    async with (
        serving(lambda _: answer(302, location=target.format(port=server.port))) as server,
        serving(lambda _: answer(200, PNG), host="127.0.0.2", port=server.port) as private,
        open_client(LOOPBACK, timeout_seconds=60) as http,
    ):
        with pytest.raises(Forbidden):
            await download(http, server.url, tmp_path / "file", largest_bytes=10_000, seconds=10)
        assert private.connections == 0
    assert files_in(tmp_path) == []


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "no address", "https://a:b/", "http://10.0.0.1/a.png", "", "http://xn--a-:9/"]
)
@on_a_loop
async def test_an_address_that_is_none_is_refused(tmp_path: Path, url: str) -> None:
    async with open_client(LOOPBACK, timeout_seconds=60) as http:
        with pytest.raises(Forbidden):
            await download(http, url, tmp_path / "file", largest_bytes=10_000, seconds=10)
    assert files_in(tmp_path) == []


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (answer(200, b"<html></html>"), InvalidInput),
        (answer(404), InvalidInput),
        (answer(403), InvalidInput),
        (answer(200, MP4), InvalidInput),
        (answer(429, retry_after="600"), SourceUnavailable),
        (answer(503), SourceUnavailable),
        (None, SourceUnavailable),
    ],
)
@on_a_loop
async def test_what_is_wrong_with_a_source_image_is_not_the_provider_s_fault(
    reply: Reply, kind: type[TaskError]
) -> None:
    async with serving(lambda _: reply) as server, open_client(LOOPBACK, timeout_seconds=60) as http:
        with pytest.raises(kind, match="source image") as caught:
            await fetch_source(http, server.url)
    assert not caught.value.is_the_providers_fault
    assert not isinstance(caught.value, RateLimited)


@pytest.mark.parametrize("location", ["http://xn--a-:9/", "http://a:b/", "http://127.0.0.1:99999/", "http://[::1/"])
@on_a_loop
async def test_a_redirect_to_an_address_that_is_none_is_an_error_of_ours(tmp_path: Path, location: str) -> None:
    redirecting = serving(lambda _: answer(302, location=location))
    async with redirecting as server, open_client(LOOPBACK, timeout_seconds=60) as http:
        with pytest.raises(TaskError):
            await download(http, server.url, tmp_path / "file", largest_bytes=10_000, seconds=10)
    assert files_in(tmp_path) == []

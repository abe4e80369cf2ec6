"""A file from a provider's address to ours: streamed, never larger than allowed, and what it is judged by content."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import httpx
from filetype.types import image, video

from windlass.shared.errors import Forbidden, NetworkTimeout, RateLimited, ResultTooLarge, ServiceUnavailable
from windlass.shared.providers.http.answers import error_of, error_of_transport

MOST_REDIRECTS = 3
LONGEST_ERROR_BYTES = 10_000
BEGINNING_BYTES = 8192
"""As much as is needed to tell what a file is."""

KINDS = (image.Png(), image.Jpeg(), image.Webp(), image.Gif(), video.Mp4(), video.Webm(), video.Mov())
NO_LABEL = {"", "application/octet-stream", "binary/octet-stream"}


@dataclass(frozen=True)
class Downloaded:
    """What is in the file, whatever it was called."""

    size_bytes: int
    sha256: str
    media_type: str
    extension: str


async def download(http: httpx.AsyncClient, url: str, to: Path, *, largest_bytes: int, seconds: float) -> Downloaded:
    """Writes a new file, which a power cut may still lose: it is on its way to where files are kept. When anything
    fails, also by being cancelled, none is left.

    Errors are `Forbidden` (a private address, no https) and `ResultTooLarge`, which no repetition mends, and transient
    ones for all else. A 404, a page in place of a picture or half a file is often a storage that is not ready yet, and
    the work is paid for: only the download is repeated, from the address that the provider then gives.
    """
    file = to.open("xb")
    try:
        async with asyncio.timeout(seconds):
            return await _fetch(http, url, file, largest_bytes)
    except BaseException as error:
        _discard(file, to)
        if isinstance(error, TimeoutError):
            raise NetworkTimeout(f"The download from {_host(url)} took longer than {seconds:g} s") from error
        raise


async def _fetch(http: httpx.AsyncClient, url: str, file: BinaryIO, largest_bytes: int) -> Downloaded:
    digest, size, beginning = hashlib.sha256(), 0, b""
    try:
        async with _opened(http, url) as response:
            if int(response.headers.get("content-length") or 0) > largest_bytes:
                raise _too_large(url, largest_bytes)
            # Not decoded: a file that was compressed on the way, which nobody asked for, is then no media.
            async for part in response.aiter_raw():
                size += len(part)
                if size > largest_bytes:
                    raise _too_large(url, largest_bytes)
                beginning += part[: BEGINNING_BYTES - len(beginning)]
                digest.update(part)
                file.write(part)
    except (httpx.UnsupportedProtocol, httpx.InvalidURL, UnicodeError) as error:
        raise Forbidden(f"Files are downloaded over https, and not from {_host(url)}") from error
    except httpx.HTTPError as error:
        raise error_of_transport(_host(url), error) from error
    media_type, extension = _judge(url, beginning, response.headers.get("content-type", ""))
    file.close()
    return Downloaded(size, digest.hexdigest(), media_type, extension)


@asynccontextmanager
async def _opened(http: httpx.AsyncClient, url: str) -> AsyncIterator[httpx.Response]:
    """The answer at the end of the redirects. The client looks at each address anew."""
    target = httpx.URL(url)
    for _ in range(MOST_REDIRECTS + 1):
        response = await http.send(http.build_request("GET", target), stream=True)
        try:
            if not response.has_redirect_location:
                if not response.is_success:
                    raise await _refused(response)
                yield response
                return
            target = response.url.join(response.headers["location"])
        finally:
            await response.aclose()
    raise ServiceUnavailable(f"{_host(url)} redirects more than {MOST_REDIRECTS} times")


async def _refused(response: httpx.Response) -> ServiceUnavailable | RateLimited:
    said = b""
    async for part in response.aiter_raw():
        said += part
        if len(said) > LONGEST_ERROR_BYTES:
            break
    error = error_of(response.url.host, response, said[:LONGEST_ERROR_BYTES].decode(errors="replace"))
    return error if isinstance(error, RateLimited) else ServiceUnavailable(error.message, **error.details)


def _judge(url: str, beginning: bytes, label: str) -> tuple[str, str]:
    """By its first bytes. A label is believed in nothing, but one of another family (a page, a film that is called a
    picture) says that something went wrong; pictures that are converted on the way often keep their old name."""
    label = label.partition(";")[0].strip().lower()
    kind = next((kind for kind in KINDS if kind.match(bytearray(beginning))), None)
    if kind is None:
        raise ServiceUnavailable(f"What {_host(url)} sent is neither a picture nor a film", label=label)
    media_type, extension = str(kind.mime), str(kind.extension)
    if label not in NO_LABEL and label.partition("/")[0] != media_type.partition("/")[0]:
        raise ServiceUnavailable(f"What {_host(url)} sent is {media_type} and was called {label}", label=label)
    return media_type, extension


def _discard(file: BinaryIO, path: Path) -> None:
    file.close()
    path.unlink(missing_ok=True)


def _too_large(url: str, largest_bytes: int) -> ResultTooLarge:
    return ResultTooLarge(f"The file at {_host(url)} is larger than {largest_bytes:,} bytes", largest=largest_bytes)


def _host(url: str) -> str:
    """Not the whole address: what follows the host is often a signature."""
    try:
        return httpx.URL(url).host or "an address without a host"
    except (httpx.InvalidURL, UnicodeError):
        return "a malformed address"

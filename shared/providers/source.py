"""The picture that an order begins with, fetched from where the client says it is."""

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path

import httpx

from windlass.shared.errors import (
    InvalidInput,
    NetworkTimeout,
    RateLimited,
    ResultTooLarge,
    ServiceUnavailable,
    TaskError,
)
from windlass.shared.providers.http.download import download

LARGEST_BYTES = 30_000_000
SECONDS = 60.0


class SourceUnavailable(TaskError):
    """The picture that a task begins with cannot be fetched just now."""

    fault = "user"


@dataclass(frozen=True)
class Source:
    content: bytes
    media_type: str
    extension: str


async def fetch_source(http: httpx.AsyncClient, url: str) -> Source:
    """What goes wrong here says nothing about the provider: a client must not be able to pause it, or to open its
    breaker, by naming a host that answers 429 or nothing at all."""
    with tempfile.TemporaryDirectory(prefix="windlass-source-") as directory:
        path = Path(directory, "source")
        try:
            found = await download(http, url, path, largest_bytes=LARGEST_BYTES, seconds=SECONDS)
        except (NetworkTimeout, RateLimited) as error:
            raise SourceUnavailable(f"The source image: {error.message}", **error.details) from error
        except ResultTooLarge as error:
            raise InvalidInput(f"The source image: {error.message}") from error
        except ServiceUnavailable as error:
            kind = SourceUnavailable if error.details.get("status", 0) >= 500 else InvalidInput
            raise kind(f"The source image: {error.message}", **error.details) from error
        if not found.media_type.startswith("image/"):
            raise InvalidInput(f"The source image is no picture but {found.media_type}")
        return Source(await asyncio.to_thread(path.read_bytes), found.media_type, found.extension)

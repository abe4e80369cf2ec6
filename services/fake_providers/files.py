"""What the jobs have made, at the addresses that were given for it; nobody asks for a key here."""

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import Any

from litestar import Response, get
from litestar.response import Redirect

from windlass.services.fake_providers.behaviour import without_words
from windlass.services.fake_providers.books import Books
from windlass.services.fake_providers.connection import drop, stay
from windlass.services.fake_providers.desk import Incoming
from windlass.services.fake_providers.drawing import FORMATS, draw
from windlass.services.fake_providers.job import NAME, Job
from windlass.services.fake_providers.scripts import Scripts
from windlass.services.fake_providers.streaming import Lost, Streamed

PIECE_BYTES = 65_536
PAGE = b"<!doctype html><html><body><script>alert('this is no picture')</script></body></html>"


@get("/files/{name:str}")
async def file(request: Incoming, name: str, books: Books, scripts: Scripts) -> Response[Any]:
    match = NAME.fullmatch(name)
    job = books.find_anywhere(match["job_id"]) if match else None
    is_made = job is not None and job.state(time.time()) == "complete" and not job.is_deleted
    if match is None or job is None or not is_made or match["extension"] not in FORMATS:
        return Response("no such file", status_code=404, media_type="text/plain")
    behaviour = scripts.hear(job.provider, "file", job.prompt)
    if "hang" in behaviour:
        await stay(request, None)
    if "drop-before" in behaviour:
        await drop(request)
    if "delay" in behaviour:
        await stay(request, behaviour.number("delay", 0))
    if behaviour.status is not None:
        headers = {"Retry-After": behaviour.retry_after} if behaviour.retry_after else {}
        return Response("", status_code=behaviour.status, media_type="text/plain", headers=headers)
    return await serve(job, int(match["index"]), match["extension"])


async def serve(job: Job, index: int, extension: str) -> Response[Any]:
    behaviour, (_, media_type) = job.behaviour, FORMATS[extension]
    if target := behaviour.text("redirect"):
        return Redirect(target)
    if "mislabelled" in behaviour:
        return Response(PAGE, media_type=media_type)
    width, height = size_of(job)
    picture = await asyncio.to_thread(draw, without_words(job.prompt), index, extension, width, height)
    if "cut-file" in behaviour:
        return Streamed(cut(picture), media_type, {"Content-Length": str(len(picture))})
    if "oversize" in behaviour:
        length = int(behaviour.number("oversize", 0))
        return Streamed(padded(picture, length), media_type, {"Content-Length": str(length)})
    if "oversize-unsaid" in behaviour:
        return Streamed(padded(picture, int(behaviour.number("oversize-unsaid", 0))), media_type)
    return Response(picture, media_type=media_type)


def size_of(job: Job) -> tuple[int, int]:
    if job.provider == "leonardo":
        return job.request.get("width", 1024), job.request.get("height", 768)
    try:
        width, height = map(int, str(job.request.get("aspectRatio", "1:1")).split(":"))
        return (1024, 1024 * height // width) if width >= height else (1024 * width // height, 1024)
    except (ValueError, ZeroDivisionError):
        return 1024, 1024


async def padded(picture: bytes, length: int) -> AsyncGenerator[bytes, None]:
    """Begins as a picture, and goes on."""
    yield picture[:length]
    left = length - len(picture)
    while left > 0:
        yield bytes(min(left, PIECE_BYTES))
        left -= PIECE_BYTES


async def cut(picture: bytes) -> AsyncGenerator[bytes, None]:
    yield picture[: len(picture) // 2]
    raise Lost

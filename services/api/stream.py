"""A task's story as server-sent events: replayed from rows, so that closing the stream loses nothing."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any
from uuid import UUID

import msgspec
from litestar import Response
from litestar.datastructures import State
from litestar.response import Stream

from services.api.auth import Caller
from services.api.errors import Problem
from services.api.schemas import error_for
from shared import db
from shared.db import Row
from shared.progress import present
from shared.states import TERMINAL
from shared.store import events, tasks

PING_SECONDS = 15
PAGE = 200
HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
TERMINAL_EVENTS = {"complete": "complete", "bury": "error", "stall": "error", "cancel": "cancelled"}


async def stream_task(state: State, row: Row, caller: Caller, last_seen: str | None) -> Response[Any]:
    """204 when the story is over and the client has read all of it: that stops an EventSource."""
    after = read_position(last_seen, row)
    if row["status"] in TERMINAL and after == row["last_seq"]:
        return Response(None, status_code=204)
    return Stream(tell(state, row["task_id"], caller, after), media_type="text/event-stream", headers=HEADERS)


def read_position(last_seen: str | None, row: Row) -> int:
    if last_seen is None or last_seen == "":
        return 0
    readable = last_seen.isascii() and last_seen.isdigit() and len(last_seen) <= len(str(row["last_seq"]))
    if not readable or int(last_seen) > row["last_seq"]:
        detail = f"the last event seen is a number from 0 to {row['last_seq']}, not {last_seen[:40]!r}"
        raise Problem(400, "invalid-event-id", detail)
    return int(last_seen)


async def tell(state: State, task_id: UUID, caller: Caller, after: int) -> AsyncIterator[bytes]:
    """Reads on from the last `seq` told whenever the hub says that there may be news."""
    yield f"retry: {random.randint(800, 2500)}\n\n".encode()  # noqa: S311 - spreads reconnections, guards no secret
    with state.hub.subscribe(task_id) as news:
        while not state.hub.closing.is_set():
            news.clear()
            try:
                page = await events.page(state.pool, task_id, after=after, limit=PAGE)
                task = await tasks.get(state.pool, task_id)
            except db.UNAVAILABLE:
                return  # the client comes back with the last id that it has seen
            assert task is not None, "tasks are never deleted"
            for event in page:
                after = event["seq"]
                if (message := as_message(event, task, caller)) is not None:
                    yield message
            if task["status"] in TERMINAL and after >= task["last_seq"]:
                return
            if after >= task["last_seq"]:
                with suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), PING_SECONDS)
                if not news.is_set():
                    yield b": ping\n\n"


def as_message(event: Row, task: Row, caller: Caller) -> bytes | None:
    """One row of history is at most one event; an end is told as an end only if it made the present state."""
    data, attempt = event["data"], event["attempt"]
    kind = event["type"]
    if kind in {"dispatch", "cancel-requested"}:
        return None
    if kind == "output":
        return encode("output", event["seq"], {"attempt": attempt, **data})
    if event["seq"] == task["last_seq"] and task["status"] in TERMINAL:
        ends = {
            "complete": {"result": task["result"]},
            "error": {"error": error_for(caller, task["error"])},
            "cancelled": {},
        }
        name = TERMINAL_EVENTS[kind] if task["status"] != "cancelled" else "cancelled"
        return encode(name, event["seq"], {"attempt": attempt, **ends[name]})
    body = {"status": data["status"], "attempt": attempt, "progress": progress_of(event)}
    if "error" in data:
        body["error"] = error_for(caller, data["error"])
    return encode("progress", event["seq"], body)


def progress_of(event: Row) -> dict[str, Any]:
    data = event["data"]
    return present(
        status=data["status"],
        attempt=event["attempt"],
        said=data.get("progress"),
        error=data.get("error"),
        at=event["at"],
        elapsed_ms=data.get("elapsed_ms", 0),
    )


def encode(name: str, seq: int, data: dict[str, Any]) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (seq, name.encode(), msgspec.json.encode(data))

"""One task's stream, over bare sockets: closing it loses nothing, and a client that does not read costs little."""

import asyncio
import secrets
import select
import signal
import socket
import time
from contextlib import AsyncExitStack, ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.support.engine.store import Engine, until
from tests.support.installation import KEY, NOBODY, Windlass
from tests.support.stream_api import ANN, api, names, output, progress, stories, story_of, two_lives, with_workers
from windlass.services.laptop.ports import free_port

__all__ = ["api"]

MEGABYTE = 2**20


@with_workers
async def test_two_lives_are_told_from_the_beginning_and_from_every_event(api: Windlass, engine: Engine) -> None:
    task_id = await two_lives(engine)
    async with story_of(api.port, task_id) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        whole = await stream.all()
        assert stream.retry
        assert 800 <= stream.retry <= 2500
    history = [(str(row["seq"]), row["type"]) for row in await engine.history(task_id)]
    assert [event.id for event in whole] == [seq for seq, _ in history]
    assert [kind for _, kind in history] == [
        "submit", "claim", "progress", "output", "bury", "revive", "claim", "output", "retry", "claim", "complete",
    ]  # fmt: skip
    assert names(whole) == [
        "progress", "progress", "progress", "output", "progress", "progress", "progress", "output", "progress",
        "progress", "complete",
    ]  # fmt: skip
    assert whole[4].data["status"] == "dead", "the end of an earlier life is told as progress"
    assert whole[4].data["error"]["type"] == "ServiceUnavailable"
    assert whole[3].data == {"attempt": 1, "text": "one\ntwo"}
    assert whole[-1].data == {"attempt": 3, "result": {"answer": 42}}
    for position, event in enumerate(whole, start=1):
        for resuming in ({"last_event_id": event.id}, {"after": event.id}, {"after": "1", "last_event_id": event.id}):
            async with story_of(api.port, task_id, **resuming) as stream:
                if position == len(whole):
                    assert stream.status == 204
                else:
                    assert await stream.all() == whole[position:]


@with_workers
async def test_a_client_that_leaves_at_every_event_misses_and_repeats_nothing(api: Windlass, engine: Engine) -> None:
    attempt = await engine.running()
    seen, position = [], "0"
    for number in range(6):
        async with story_of(api.port, attempt.task_id, last_event_id=position) as stream:
            await progress(engine, attempt, f"step {number}")
            (event,) = await stream.some(1)
        seen.append(event)
        position = event.id
    await engine.finish(attempt)
    async with story_of(api.port, attempt.task_id, last_event_id=position) as stream:
        seen += await stream.all()
    assert [int(event.id) for event in seen] == list(range(1, 10))
    assert seen[-1].name == "complete"


@with_workers
async def test_news_come_at_once_and_pings_in_between(api: Windlass, engine: Engine) -> None:
    attempt = await engine.running()
    async with story_of(api.port, attempt.task_id) as stream:
        await stream.some(2)
        listening = asyncio.create_task(stream.event())
        await until(lambda: _is_true(stream.pings >= 2))
        await progress(engine, attempt, "at last")
        event = await listening
        assert event
        assert event.data["progress"]["message"] == "at last"


@with_workers
@pytest.mark.parametrize("ending", ["bury", "cancel"])
async def test_a_task_that_dies_again_and_again_has_one_end(api: Windlass, engine: Engine, ending: str) -> None:
    task_id = await engine.submit()
    for life in range(3):
        attempt = await engine.start(task_id)
        if ending == "cancel":
            await engine.cancel(task_id)
        await engine.finish(attempt, "bury")
        if life < 2:
            await engine.revive(task_id)
    async with story_of(api.port, task_id) as stream:
        whole = await stream.all()
    assert names(whole)[:-1] == ["progress"] * (len(whole) - 1)
    assert names(whole)[-1] == ("error" if ending == "bury" else "cancelled")
    statuses = [event.data.get("status") for event in whole]
    assert statuses.count("dead" if ending == "bury" else "cancelled") == 2


@with_workers
async def test_a_stream_over_a_revival_goes_on_with_the_new_life(api: Windlass, engine: Engine) -> None:
    """Late for the first end: a revived task is alive, whatever has been."""
    task_id = await engine.dead()
    await engine.revive(task_id)
    async with story_of(api.port, task_id, last_event_id="2") as stream:
        dead, revived = await stream.some(2)
        assert (dead.name, dead.data["status"], revived.data["status"]) == ("progress", "dead", "queued")
        await engine.finish(await engine.start(task_id))
        assert names(await stream.all()) == ["progress", "complete"]


@with_workers
async def test_a_bad_position_is_refused_and_a_foreign_task_does_not_exist(api: Windlass, engine: Engine) -> None:
    task_id = await engine.submit(user_id="ben")
    refusals: list[tuple[dict[str, Any], int, str]] = [
        ({"last_event_id": "one"}, 400, "invalid-event-id"),
        ({"last_event_id": "2"}, 400, "invalid-event-id"),
        ({"last_event_id": "-1"}, 400, "invalid-event-id"),
        ({"after": "1.0"}, 400, "invalid-event-id"),
        ({"after": "0", "last_event_id": "7"}, 400, "invalid-event-id"),
        ({"key": ANN}, 404, "task-not-found"),
        ({"key": None}, 401, "unauthorized"),
    ]
    for options, status, code in refusals:
        async with story_of(api.port, task_id, **options) as answer:
            assert answer.status == status
            assert f'"code":"{code}"'.encode() in await answer.body()
    async with story_of(api.port, NOBODY) as answer:
        assert answer.status == 404


@with_workers
async def test_stack_traces_are_not_told_to_users(api: Windlass, engine: Engine) -> None:
    task_id = await engine.dead()
    async with story_of(api.port, task_id, key=ANN) as mine, story_of(api.port, task_id) as admins:
        assert (await mine.all())[-1].data["error"]["stack_trace"] is None
        assert (await admins.all())[-1].data["error"]["stack_trace"]


@with_workers
async def test_a_hundred_idle_streams_add_no_query(api: Windlass, engine: Engine) -> None:
    """The look that the listening connection takes around, which is there without them, serves them all."""
    attempts = [await engine.running() for _ in range(10)]
    async with AsyncExitStack() as stack:
        for number in range(100):
            stream = await stack.enter_async_context(story_of(api.port, attempts[number % 10].task_id))
            await stream.some(2)
        over_many = [await stack.enter_async_context(stories(api.port)) for _ in range(10)]
        listening = [asyncio.create_task(stream.event()) for stream in over_many]
        await until(lambda: _is_true(all(stream.pings for stream in over_many)))
        before = await latest_queries(engine, "windlass-api")
        assert before
        for _ in range(4):
            looked_at = await latest_queries(engine, "windlass-api-listen")
            await until(lambda at=looked_at: _differs(engine, at))  # type: ignore[misc]
        assert await latest_queries(engine, "windlass-api") == before
        for each in listening:
            each.cancel()


async def latest_queries(engine: Engine, application: str) -> dict[int, datetime]:
    """When each connection of a name was last asked something."""
    rows = await engine.pool.fetch(
        "SELECT pid, query_start FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name LIKE $1 || ' %'",
        application,
    )
    return {row["pid"]: row["query_start"] for row in rows}


async def _differs(engine: Engine, before: dict[int, datetime]) -> bool:
    return await latest_queries(engine, "windlass-api-listen") != before


@with_workers
async def test_a_client_that_does_not_read_is_cut_off_and_can_resume(api: Windlass, engine: Engine) -> None:
    attempt = await engine.running()
    pieces = [secrets.token_hex(128 * 1024) for _ in range(80)]
    for piece in pieces:
        await output(engine, attempt, piece)
    before = resident(api.api.pid)
    with ExitStack() as stack:
        clients = [stack.enter_context(silent_client(api.port, attempt.task_id)) for _ in range(8)]
        await until(lambda: _is_true(all(map(is_cut_off, clients))))
    assert resident(api.api.pid, peak=True) - before < 32 * MEGABYTE, "20 MB were to be told to each of them"
    async with story_of(api.port, attempt.task_id) as stream:
        told = await stream.some(82)
    assert [event.data["text"] for event in told[2:]] == pieces


def silent_client(port: int, task_id: UUID) -> socket.socket:
    """Asks for a stream and reads nothing of it."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    head = f"GET /api/v1/tasks/{task_id}/stream HTTP/1.1\r\nHost: api\r\nAuthorization: Bearer {KEY}\r\n\r\n"
    client.sendall(head.encode())
    return client


def is_cut_off(client: socket.socket) -> bool:
    poll = select.poll()
    poll.register(client, 0)
    return any(flags & (select.POLLHUP | select.POLLERR) for _, flags in poll.poll(0))


def resident(pid: int, *, peak: bool = False) -> int:
    field = "VmHWM" if peak else "VmRSS"
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition(f"{field}:")[2].split()[0]) * 1024


@with_workers
async def test_told_to_stop_an_api_ends_its_streams_in_time_also_the_stuck_ones(api: Windlass, engine: Engine) -> None:
    attempt = await engine.running()
    port = free_port()
    leaving = api.start("api", WINDLASS_PORT=str(port), WINDLASS_STREAM_PATIENCE_SECONDS="600")
    await until(lambda: _is_true(accepts(port)), seconds=120)
    async with story_of(port, attempt.task_id) as stream:
        await stream.some(2)
        for _ in range(80):
            await output(engine, attempt, secrets.token_hex(64 * 1024))
        with silent_client(port, attempt.task_id) as stuck:
            await stream.some(80)
            told_at = time.monotonic()
            leaving.send_signal(signal.SIGTERM)
            assert await stream.event() is None, "it ends in order"
            await until(lambda: _is_true(is_cut_off(stuck)))
            assert time.monotonic() - told_at < 60, (
                "two seconds and some for a busy machine, and not a stream's patience"
            )
    await asyncio.to_thread(leaving.wait, 60)


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def _is_true(value: bool) -> bool:
    return value

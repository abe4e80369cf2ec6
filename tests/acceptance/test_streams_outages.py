"""Open streams while what is behind them goes away: a restart of Postgres, a rolling restart of the api."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from uuid import UUID

import asyncpg
import httpx
import pytest

from tests.support.engine.store import Engine, an_engine, until
from tests.support.event_reader import Event
from tests.support.installation import Process, Windlass
from tests.support.servers.databases import ask, execute, migrate
from tests.support.servers.restartable_servers import RestartableServer, restartable_postgres
from tests.support.stream_api import api, progress, running_api, stories, story_of, with_workers
from tests.support.waiting import wait_until
from windlass.services.laptop.ports import free_port

__all__ = ["api"]


@pytest.fixture(scope="module")
def postgres() -> Iterator[RestartableServer]:
    with restartable_postgres() as postgres:
        migrate(postgres.url)
        yield postgres


@pytest.fixture(scope="module")
def api_on_it(postgres: RestartableServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Windlass]:
    yield from running_api(postgres.url, tmp_path_factory.mktemp("api"))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["fast", "immediate"])
def test_a_restart_of_postgres_is_a_pause_and_no_end(
    postgres: RestartableServer, api_on_it: Windlass, how: signal.Signals
) -> None:
    """A client that had to come back while it is away would get a 503, and an EventSource gives up on that."""

    async def scenario() -> None:
        async with an_engine(postgres.url) as engine:
            attempt = await engine.running()
        async with (
            story_of(api_on_it.port, attempt.task_id) as story,
            stories(api_on_it.port, task_id=[attempt.task_id]) as many,
        ):
            assert [event.id for event in await story.some(2)] == ["1", "2"]
            listening = asyncio.create_task(story.all()), asyncio.create_task(_until_complete(many))
            async with everybody_reading(postgres.url, attempt.task_id, readers=2):
                await asyncio.to_thread(postgres.stop, how)
            pings = story.pings, many.pings
            await until(lambda: _is(story.pings > pings[0] + 1 and many.pings > pings[1] + 1))
            async with story_of(api_on_it.port, attempt.task_id) as refused:
                assert (refused.status, refused.headers["retry-after"]) == (503, "2")
            await asyncio.to_thread(postgres.start)
            async with an_engine(postgres.url) as engine:
                await progress(engine, attempt, "back again")
                await engine.finish(attempt)
            async with asyncio.timeout(90):
                assert [event.id for event in await listening[0]] == ["3", "4"]
                assert [event.data["seq"] for event in await listening[1]] == [3, 4]

    asyncio.run(scenario())


@asynccontextmanager
async def everybody_reading(url: str, task_id: UUID, *, readers: int) -> AsyncIterator[None]:
    """Streams that were woken and are in the middle of their reads, which a lock holds up."""
    waiting = """
        SELECT count(*) FROM pg_stat_activity
        WHERE application_name LIKE 'windlass-api %' AND wait_event_type = 'Lock' AND query LIKE '%task_events%'
    """
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("BEGIN; LOCK TABLE task_events IN ACCESS EXCLUSIVE MODE")
        await asyncio.to_thread(execute, url, f"NOTIFY windlass_events, '{task_id}'")

        async def all_wait() -> bool:
            return bool((await asyncio.to_thread(ask, url, waiting))[0][0] >= readers)

        await until(all_wait)
        yield
    finally:
        connection.terminate()


@with_workers
async def test_a_rolling_restart_of_the_api_loses_and_repeats_nothing(api: Windlass, engine: Engine) -> None:
    attempt = await engine.running()
    ports = [api.port, free_port()]
    processes = [api.api, api.start("api", WINDLASS_PORT=str(ports[1]))]
    await asyncio.to_thread(wait_until_ready, ports[1])

    restarted = asyncio.Event()

    async def work() -> None:
        while not restarted.is_set():
            await progress(engine, attempt, "on and on")
            await asyncio.sleep(0.02)
        await engine.finish(attempt)

    async def listen() -> list[Event]:
        """As an EventSource behind a load balancer does: when a stream ends, the next one goes to whoever is there."""
        told: list[Event] = []
        while not told or told[-1].name != "complete":
            for port in ports:
                position = told[-1].id if told else "0"
                with suppress(ConnectionError, asyncio.IncompleteReadError):
                    async with story_of(port, attempt.task_id, last_event_id=position) as stream:
                        assert stream.status in {200, 503}
                        if stream.status == 200:
                            async for event in stream:
                                told.append(event)  # noqa: PERF401 - a connection that breaks leaves what it brought
        return told

    async with asyncio.TaskGroup() as group:
        listening = group.create_task(listen())
        group.create_task(work())
        await stop(processes[0])
        api.api = api.start("api")
        await asyncio.to_thread(wait_until_ready, ports[0])
        await stop(processes[1])
        restarted.set()
    told = listening.result()
    assert [int(event.id) for event in told] == [row["seq"] for row in await engine.history(attempt.task_id)]


async def stop(process: Process) -> None:
    process.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(process.wait, 60) == 0


def wait_until_ready(port: int) -> None:
    def is_ready() -> bool:
        with suppress(httpx.TransportError):
            return httpx.get(f"http://127.0.0.1:{port}/health/ready", trust_env=False).status_code == 200
        return False

    wait_until("an api", is_ready)


async def _until_complete(stream: AsyncIterator[Event]) -> list[Event]:
    events: list[Event] = []
    async for event in stream:
        events.append(event)
        if event.name == "complete":
            break
    return events


async def _is(value: object) -> bool:
    return bool(value)

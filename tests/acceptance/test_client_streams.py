"""The Python client on streams of many tasks, stream tokens and files, over a restart of the API."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, closing

import httpx
import pytest

from tests.support.an_api import an_api
from tests.support.installation import KEY, Windlass
from tests.support.servers.private_servers import Servers
from windlass import AsyncClient, CancelledEvent, Client, MediaNotFound, NotFound, ProgressEvent, TaskEvent

LATER = 3600.0


@pytest.fixture(scope="module")
def api(servers: Servers, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Windlass]:
    with an_api(servers, migrated_template, tmp_path_factory.mktemp("client")) as windlass:
        yield windlass


@pytest.fixture
def client(api: Windlass) -> Iterator[Client]:
    with Client(api.url, KEY) as client:
        yield client


def told(event: TaskEvent) -> tuple[str, int, type]:
    return event.task_id, event.event.seq, type(event.event)


def test_many_tasks_are_told_on_one_stream_over_a_restart(api: Windlass, client: Client) -> None:
    """What happens while nobody is connected is told afterwards, once, from the place that the server named."""
    first = client.submit("probe", delay_seconds=LATER, project_id="many").task_id
    client.submit("probe", delay_seconds=LATER, project_id="elsewhere")
    lost: list[object] = []
    with closing(client.stream_many(project_id="many", on_interruption=lost.append)) as stream:
        beginning = as_soon_as_it_listens(client, stream)
        api.kill_api()
        api.start_api_again()
        with Client(api.url, KEY) as other:
            other.cancel(first)
        events = [told(beginning)]
        while events[-1] != (first, 2, CancelledEvent):
            events.append(told(next(stream)))
    assert lost, "the connection was lost in between"
    assert len(set(events)) == len(events)
    with closing(client.stream_many(task_id=[first], after=beginning.cursor)) as again:
        assert told(next(again)) == (first, 2, CancelledEvent), "a cursor brings a reader back"


def as_soon_as_it_listens(client: Client, stream: Iterator[TaskEvent]) -> TaskEvent:
    """A stream begins with the first `next`: somebody has to do something while it waits."""
    listening = threading.Event()

    def submit_again_and_again() -> None:
        while not listening.wait(0.2):
            client.submit("probe", delay_seconds=LATER, project_id="many")

    with ThreadPoolExecutor() as pool:
        submitting = pool.submit(submit_again_and_again)
        event = next(stream)
        listening.set()
        submitting.result()
    assert isinstance(event.event, ProgressEvent)
    return event


def test_many_tasks_are_told_to_those_who_await(api: Windlass) -> None:
    async def read() -> TaskEvent:
        async with AsyncClient(api.url, KEY) as client:
            task = await client.submit("probe", delay_seconds=LATER)
            async with aclosing(client.stream_many(task_id=task.task_id)) as stream:
                waiting = asyncio.create_task(anext(stream))
                while not waiting.done():
                    await client.cancel(task.task_id)
                    await client.retry(task.task_id)
                    await asyncio.wait({waiting}, timeout=0.2)
                return await waiting

    assert isinstance(asyncio.run(read()), TaskEvent)


def test_a_stream_token_opens_the_stream_without_a_key(client: Client) -> None:
    task = client.submit("probe", delay_seconds=LATER)
    issued = client.stream_token(task.task_id)
    client.cancel(task.task_id)
    told = httpx.get(issued.url, timeout=60, trust_env=False)
    assert (told.status_code, told.text.count("event: cancelled")) == (200, 1)
    assert issued.token in issued.url
    with pytest.raises(NotFound):
        client.stream_token("no-id")


def test_a_file_that_is_not_there(client: Client) -> None:
    with pytest.raises(MediaNotFound):
        client.media("no-id")

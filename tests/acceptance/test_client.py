"""The Python client against a running Windlass, over restarts of the API."""

import asyncio
import itertools
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.installation import KEY, NOBODY, Windlass
from tests.support.waiting import wait_until
from windlass import (
    AsyncClient,
    Client,
    CompleteEvent,
    ErrorEvent,
    InvalidPayload,
    NotCancellable,
    NotConfigured,
    NotFound,
    NotRevivable,
    ProgressEvent,
    TaskCancelled,
    TaskDead,
    TaskNotFound,
    Unauthorized,
    UnknownActor,
    Unreachable,
    UnreadableAnswer,
    WaitTimeout,
)
from windlass.client.submitting import completed
from windlass.services.laptop.ports import free_port


@pytest.fixture(scope="module")
def client(running_windlass: Windlass) -> Iterator[Client]:
    with Client(running_windlass.url, KEY) as client:
        yield client


@contextmanager
def in_the_background(action: Callable[[], None]) -> Iterator[None]:
    """Something that happens meanwhile, and must have gone well."""
    with ThreadPoolExecutor() as pool:
        happening = pool.submit(action)
        yield
        happening.result()


def restart_the_api(windlass: Windlass) -> None:
    windlass.kill_api()
    windlass.start_api_again()


def restart_the_api_when_it_runs(windlass: Windlass, task_id: str) -> None:
    windlass.client.wait_until(task_id, "running")
    restart_the_api(windlass)


def told_seqs(windlass: Windlass, task_id: str) -> list[int]:
    """What the whole stream of an ended task tells."""
    with windlass.client.stream(task_id) as stream:
        return [seq for seq, _, _ in stream]


def test_run_gives_the_completed_task(client: Client) -> None:
    task = client.run("probe", {"seconds": 0.2, "steps": 2, "result": {"n": 1}}, tags=["a", "b"], priority=1)
    assert task.status == "completed"
    assert task.has_ended
    assert task.result["echo"] == {"n": 1}
    assert (task.tags, task.priority, task.payload["steps"]) == (("a", "b"), 1, 2)
    assert task.created_at is not None
    assert task.created_at <= datetime.now(UTC)
    assert task.progress.message == "Completed"


def test_run_raises_with_the_task_when_there_is_no_result(client: Client) -> None:
    with pytest.raises(TaskDead, match="InvalidInput: the probe was told to fail for good") as dead:
        client.run("probe", {"outcome": "permanent"})
    assert dead.value.task.error is not None
    assert dead.value.task.error.type == "InvalidInput"
    submitted = client.submit("probe", delay_seconds=600)
    assert client.cancel(submitted.task_id).status == "cancelled"
    with pytest.raises(TaskCancelled, match=submitted.task_id):
        completed(client.wait(submitted.task_id))


def test_every_option_of_a_task_arrives(client: Client) -> None:
    first = client.submit("probe", run_at=datetime.now(UTC) + timedelta(hours=1), max_age_seconds=7200)
    task = client.submit(
        "probe",
        {"result": 1},
        provider="one-by-one",
        task_type="greeting",
        priority=7,
        max_retries=0,
        timeout_seconds=12.5,
        tags=("x",),
        project_id="p",
        workflow_id="w",
        parent_task_id=first.task_id,
        depends_on=[first.task_id],
        user_id="alice",
    )
    assert task.status == "blocked"
    assert (task.provider, task.task_type, task.priority, task.max_retries) == ("one-by-one", "greeting", 7, 0)
    assert (task.timeout_seconds, task.project_id, task.workflow_id, task.user_id) == (12.5, "p", "w", "alice")
    assert (task.parent_task_id, task.depends_on) == (first.task_id, (first.task_id,))
    assert first.expires_at is not None
    assert first.available_at is not None
    assert first.available_at > datetime.now(UTC) + timedelta(minutes=50)


def test_many_are_submitted_by_the_thousand(client: Client) -> None:
    submitted = client.submit_many(
        {"actor": "probe", "payload": {"result": n}, "tags": ["many"], "delay_seconds": 600} for n in range(1001)
    )
    assert len({task.task_id for task in submitted}) == 1001
    listed = [task.task_id for task in client.list(tag="many")]
    assert sorted(listed) == sorted(task.task_id for task in submitted), "no page repeats or leaves out a task"
    assert client.submit_many([]) == ()


def test_a_list_pages_through_by_itself(client: Client) -> None:
    submitted = client.submit_many([{"actor": "probe", "tags": ["paged"], "delay_seconds": 600}] * 7)
    newest_first = [task.task_id for task in reversed(submitted)]
    assert [task.task_id for task in client.list(tag=["paged"], page_size=3)] == newest_first
    assert [
        task.task_id for task in client.list(tag="paged", status=["queued", "running"], page_size=2)
    ] == newest_first
    assert list(client.list(tag="paged", status="dead")) == []
    soon = datetime.now(UTC) + timedelta(minutes=1)
    assert list(client.list(tag="paged", created_after=soon)) == []
    (first,) = itertools.islice(client.list(tag="paged", full=True), 1)
    assert first.payload == {}


def test_a_history_is_read_to_its_end_and_by_type(client: Client) -> None:
    task = client.run("probe", {"seconds": 0.2, "steps": 2})
    whole = list(client.events(task.task_id))
    assert [event.seq for event in whole] == list(range(1, len(whole) + 1))
    assert [event.type for event in whole if event.type != "progress"] == ["submit", "claim", "complete"]
    assert [event.type for event in client.events(task.task_id, types=["claim", "submit"])] == ["submit", "claim"]
    assert list(client.events(task.task_id, after=2)) == whole[2:]


def test_a_cancelled_task_can_be_retried_and_a_completed_one_not(client: Client) -> None:
    task = client.submit("probe", delay_seconds=600)
    client.cancel(task.task_id)
    revived = client.retry(task.task_id)
    assert (revived.status, revived.available_at) == ("queued", task.available_at), "it keeps its time"
    done = client.wait(client.submit("probe").task_id)
    assert done.status == "completed"
    with pytest.raises(NotRevivable) as refused:
        client.retry(done.task_id)
    assert (refused.value.code, refused.value.status) == ("not-revivable", 409)
    with pytest.raises(NotCancellable):
        client.cancel(done.task_id)


def test_workers_and_health_are_told(client: Client) -> None:
    assert any(worker.state == "active" and "probe.probe" in worker.queues for worker in client.workers())
    health = client.health()
    assert health.status == "healthy"
    assert health.components["postgres"].status == "healthy"


def test_errors_come_by_their_code_and_name_the_field(client: Client, running_windlass: Windlass) -> None:
    with pytest.raises(InvalidPayload) as refused:
        client.submit("probe", {"seconds": -1})
    assert refused.value.errors[0].pointer == "/payload/seconds"
    assert refused.value.request_id
    with pytest.raises(UnknownActor, match="no actor is called poet"):
        client.submit("poet")
    with pytest.raises(TaskNotFound):
        client.get(NOBODY)
    with pytest.raises(NotFound):
        client.bulk_progress("no/such thing")
    with Client(running_windlass.url, "wl_nobody_abcdefghijklmnopqrstuvwxyz") as stranger:
        with pytest.raises(Unauthorized):
            stranger.get(NOBODY)
        with pytest.raises(Unauthorized):
            next(stranger.stream(NOBODY))


def test_an_empty_id_is_refused_before_it_means_something_else(client: Client) -> None:
    with pytest.raises(ValueError, match="empty"):
        client.get("")


def test_the_address_and_the_key_come_from_the_environment(
    running_windlass: Windlass, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # where nobody has a `windlass up`
    with pytest.raises(NotConfigured, match="WINDLASS_URL"):
        Client()
    monkeypatch.setenv("WINDLASS_URL", f"{running_windlass.url}/")
    with pytest.raises(NotConfigured, match="WINDLASS_API_KEY"):
        Client()
    monkeypatch.setenv("WINDLASS_API_KEY", KEY)
    with Client() as client:
        assert client.health().status == "healthy"


def test_nobody_at_the_address_is_said_when_the_patience_is_over() -> None:
    with Client(f"http://127.0.0.1:{free_port()}", KEY, patience=0.5) as client:
        with pytest.raises(Unreachable, match="cannot reach") as refused:
            client.submit("probe")
        assert not refused.value.sent
        with pytest.raises(Unreachable):
            next(client.stream(NOBODY))
        with pytest.raises(Unreachable):
            client.wait(NOBODY)


def test_somebody_else_at_the_address_is_noticed() -> None:
    def answer_once() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nHello")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with Client(url, KEY) as client:
            with in_the_background(answer_once), pytest.raises(UnreadableAnswer, match="not JSON"):
                client.get(NOBODY)
            with in_the_background(answer_once), pytest.raises(UnreadableAnswer, match="no stream of events"):
                next(client.stream(NOBODY))


def test_a_wait_ends_when_its_time_is_up_and_the_task_goes_on(client: Client) -> None:
    client.set_provider("one-by-one", paused=True)
    try:
        task = client.submit("probe", provider="one-by-one")
        with pytest.raises(WaitTimeout, match="it goes on") as late:
            client.wait(task.task_id, timeout=0.2)
    finally:
        client.set_provider("one-by-one", paused=False)
    assert late.value.task.status == "queued"
    assert client.wait(task.task_id).status == "completed"


def test_a_wait_survives_a_restart_of_the_api(client: Client, running_windlass: Windlass) -> None:
    task = client.submit("probe", {"seconds": 6, "result": "there"})
    with in_the_background(lambda: restart_the_api_when_it_runs(running_windlass, task.task_id)):
        assert client.wait(task.task_id, timeout=120).result["echo"] == "there"


def test_a_submit_reaches_an_api_that_comes_back(client: Client, running_windlass: Windlass) -> None:
    running_windlass.kill_api()
    with in_the_background(running_windlass.start_api_again):
        assert client.submit("probe", delay_seconds=600).status == "queued"


def test_a_stream_goes_on_over_a_killed_api_without_a_gap_or_a_repeat(
    client: Client, running_windlass: Windlass
) -> None:
    task = client.submit("probe", {"seconds": 6, "steps": 25, "result": "all"})
    interruptions: list[object] = []
    events = []
    with closing(client.stream(task.task_id, on_interruption=interruptions.append)) as stream:
        for event in stream:
            events.append(event)
            if isinstance(event, ProgressEvent) and event.progress.percent and len(interruptions) == 0:
                restart_the_api(running_windlass)
    assert interruptions, "the connection was cut"
    assert isinstance(events[-1], CompleteEvent)
    assert events[-1].result["echo"] == "all"
    assert [event.seq for event in events] == told_seqs(running_windlass, task.task_id)


def test_a_stream_starts_after_any_event_and_has_nothing_to_say_after_the_last(
    client: Client, running_windlass: Windlass
) -> None:
    with pytest.raises(TaskDead) as dead:
        client.run("probe", {"outcome": "permanent"})
    task_id = dead.value.task.task_id
    whole = list(client.stream(task_id))
    assert isinstance(whole[-1], ErrorEvent)
    assert whole[-1].error is not None
    assert whole[-1].error.type == "InvalidInput"
    for position, event in enumerate(whole, start=1):
        assert list(client.stream(task_id, after=event.seq)) == whole[position:]


def test_the_asynchronous_client_does_the_same(running_windlass: Windlass) -> None:
    async def use() -> None:
        async with AsyncClient(running_windlass.url, KEY) as client:
            assert (await client.run("probe", {"result": 5})).result["echo"] == 5
            with pytest.raises(TaskDead):
                await client.run("probe", {"outcome": "permanent"})
            submitted = await client.submit_many([{"actor": "probe", "tags": ["async"], "delay_seconds": 600}] * 3)
            listed = [task.task_id async for task in client.list(tag="async", page_size=2)]
            assert listed == [task.task_id for task in reversed(submitted)]
            assert (await client.cancel(listed[0])).status == "cancelled"
            assert [event.type async for event in client.events(listed[0])] == ["submit", "cancel"]
            assert (await client.retry(listed[0])).status == "queued"
            assert (await client.get(listed[1])).status == "queued"
            with pytest.raises(WaitTimeout):
                await client.wait(listed[1], timeout=0)
            with pytest.raises(TaskNotFound):
                await client.get(NOBODY)
            assert await client.workers()
            assert (await client.health()).status == "healthy"

    asyncio.run(use())


def test_asynchronous_streams_and_waits_go_on_over_a_killed_api(running_windlass: Windlass) -> None:
    async def use() -> None:
        async with AsyncClient(running_windlass.url, KEY) as client:
            task = await client.submit("probe", {"seconds": 6, "steps": 25})
            waiting = asyncio.create_task(client.wait(task.task_id))
            interruptions: list[object] = []
            seqs = []
            async for event in client.stream(task.task_id, on_interruption=interruptions.append):
                seqs.append(event.seq)
                if isinstance(event, ProgressEvent) and event.progress.percent and not interruptions:
                    await asyncio.to_thread(restart_the_api, running_windlass)
            assert interruptions
            assert seqs == told_seqs(running_windlass, task.task_id)
            assert (await waiting).status == "completed"

    asyncio.run(use())


def test_a_reader_that_leaves_early_leaves_no_connection_behind(running_windlass: Windlass) -> None:
    async def use() -> None:
        async with AsyncClient(running_windlass.url, KEY) as client:
            task = await client.submit("probe", delay_seconds=600)
            stream = client.stream(task.task_id)
            await anext(stream)
            await stream.aclose()
            connections = client._http._transport._pool.connections  # type: ignore[attr-defined]
            assert all(connection.is_idle() or connection.is_closed() for connection in connections)

    asyncio.run(use())
    wait_until("the api still serves", lambda: running_windlass.health() == "healthy")

"""Told to stop, a worker hands everything back: no retry is used, no slot is left behind."""

import signal

import pytest

from tests.acceptance.conftest import let_the_next_attempt_be_short
from tests.support.installation import Windlass
from tests.support.servers.forwarder import forwarding
from tests.support.waiting import wait_until


@pytest.fixture
def windlass(mended_windlass: Windlass) -> Windlass:
    return mended_windlass


def test_a_worker_told_to_stop_hands_its_tasks_back_for_free(windlass: Windlass) -> None:
    client = windlass.client
    ids = client.submit_many([{"payload": {"seconds": 600}} for _ in range(12)])
    ids.append(client.submit(provider="one-by-one", payload={"seconds": 600})["task_id"])
    wait_until("some of them run", lambda: client.tasks(status="running"))
    let_the_next_attempt_be_short(windlass, *ids)
    leaving = windlass.workers()[0]["worker_id"]
    windlass.actors.send_signal(signal.SIGTERM)
    assert windlass.actors.wait(60) == 0
    assert client.tasks(status="running") == []
    assert [worker["worker_id"] for worker in client.workers("stopped")] == [leaving]
    windlass.actors = windlass.start("actors")
    for task_id in ids:
        task = client.finished(task_id)
        assert (task["status"], task["retry_count"]) == ("completed", 0)
        assert client.story(task_id).count("complete") == 1
    assert any(client.get(task_id)["interrupt_count"] == 1 for task_id in ids)


def test_short_work_is_finished_before_the_worker_leaves(windlass: Windlass) -> None:
    """Short is what ends while it may still work, which is for longer here than any machine takes."""
    client = windlass.client
    windlass.actors.send_signal(signal.SIGTERM)
    windlass.actors.wait(60)
    windlass.actors = windlass.start("actors", WINDLASS_DRAIN_SECONDS="60")
    task_id = client.submit(payload={"seconds": 2})["task_id"]
    wait_until("it has begun", lambda: client.get(task_id)["attempt"] == 1)
    windlass.actors.send_signal(signal.SIGTERM)
    windlass.actors.wait(100)
    task = client.get(task_id)
    assert (task["status"], task["attempt"], task["interrupt_count"]) == ("completed", 1, 0)


def test_a_worker_whose_postgres_says_nothing_leaves_by_itself_and_in_time(windlass: Windlass) -> None:
    """Its two good-byes take two seconds each. Its guardian gives it twice that; to reach Postgres anew for each of
    them, or to wait for its answer, would take longer."""
    windlass.actors.send_signal(signal.SIGTERM)
    windlass.actors.wait(60)
    limit = {"WINDLASS_STOP_GRACE_SECONDS": "1.5", "WINDLASS_DRAIN_SECONDS": "5"}
    with forwarding(windlass.environment["WINDLASS_DATABASE_URL"]) as postgres:
        windlass.actors = windlass.start("actors", WINDLASS_DATABASE_URL=postgres.url, **limit)
        (worker,) = wait_until("a worker", windlass.workers)
        wait_until("it is at work", lambda: f"worker {worker['worker_id']} serves" in windlass.log())
        postgres.freeze()
        windlass.actors.send_signal(signal.SIGTERM)
        assert windlass.actors.wait(60) == 0
        for state in ("stopping", "stopped"):
            assert f"could not say that this worker is {state} (TimeoutError)" in windlass.log()
        assert f"worker {worker['worker_id']} stopped" in windlass.log(), "it was not killed by its guardian"


def test_a_worker_that_waits_for_postgres_since_its_start_leaves_when_it_is_told(windlass: Windlass) -> None:
    windlass.actors.send_signal(signal.SIGTERM)
    windlass.actors.wait(60)
    with forwarding(windlass.environment["WINDLASS_DATABASE_URL"]) as postgres:
        postgres.freeze()
        limit = {"WINDLASS_STOP_GRACE_SECONDS": "1.5", "WINDLASS_DRAIN_SECONDS": "5"}
        windlass.actors = windlass.start("actors", WINDLASS_DATABASE_URL=postgres.url, **limit)
        wait_until("it waits", lambda: "actors: waiting for Postgres" in windlass.log())
        windlass.actors.send_signal(signal.SIGTERM)
        assert windlass.actors.wait(60) == 0
    assert "Postgres has not answered since the start" in windlass.log(), "it was not killed by its guardian"


def test_the_other_services_stop_when_told_and_streams_end_within_two_seconds(windlass: Windlass) -> None:
    client = windlass.client
    task_id = client.submit(delay_seconds=60)["task_id"]
    with client.stream(task_id) as stream:
        next(stream)
        windlass.api.send_signal(signal.SIGTERM)
        assert list(stream) == []
        assert windlass.api.wait(60) == 0
    for process in (windlass.dispatcher, windlass.janitor):
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0

"""How tasks end and begin again: retries, dead letters, revivals, expiry, cancels, delays, priorities."""

import asyncio
import json
import signal
from datetime import datetime
from itertools import pairwise

import asyncpg
import pytest

from tests.support.installation import Client, Windlass
from tests.support.waiting import wait_until
from windlass.shared.actors.built_in import built_in


@pytest.fixture
def client(running_windlass: Windlass) -> Client:
    """Of one Windlass for all tests that kill nothing."""
    return running_windlass.client


@pytest.fixture
def windlass(mended_windlass: Windlass) -> Windlass:
    """The same one, whose parts may be killed."""
    return mended_windlass


def test_a_payload_that_is_too_large_with_its_results_dies_and_can_be_read(client: Client) -> None:
    large = client.submit(payload={"result": "x" * 900_000})["task_id"]
    references = [{"$from": large} for _ in range(500)]
    task_id = client.submit(payload={"result": references}, depends_on=[large])["task_id"]
    task = client.finished(task_id)
    assert (task["status"], task["attempt"]) == ("dead", 1)
    assert (task["error"]["type"], task["error"]["kind"]) == ("InvalidInput", "permanent")
    detail = "with the results that it refers to, the payload has more than 8000000 bytes"
    assert task["input"] is None
    assert task["input_error"] == {"pointer": "/result/8", "detail": detail}
    assert task["error"]["message"] == f"/result/8: {detail}"
    assert task["payload"]["result"] == references


def test_a_transient_error_is_retried_by_its_schedule(client: Client) -> None:
    """Of an error that gives one the time to look."""
    task_id = client.submit(payload={"fail_times": 1, "error_type": "ServiceUnavailable"})["task_id"]
    waiting = client.wait_until(task_id, "retrying")
    assert waiting["lane"] == "retry"
    assert waiting["error"]["type"] == "ServiceUnavailable"
    assert waiting["progress"]["message"] == "Retrying (attempt 2)"
    delay = seconds_between(waiting["updated_at"], waiting["available_at"])
    assert 5 <= delay <= 5.5 + 0.05
    finished = client.finished(task_id)
    assert (finished["status"], finished["attempt"], finished["retry_count"]) == ("completed", 2, 1)
    assert finished["started_at"] >= waiting["available_at"]
    assert finished["error"] is None


def test_a_task_s_own_delays_win(client: Client) -> None:
    own = {"NetworkTimeout": [0, 30]}
    task_id = client.submit(payload={"fail_times": 2, "error_type": "NetworkTimeout"}, retry_delays=own)["task_id"]
    wait_until("its second failure", lambda: client.get(task_id)["retry_count"] == 2)
    waiting = client.get(task_id)
    assert (waiting["status"], waiting["attempt"]) == ("retrying", 2)
    assert 30 <= seconds_between(waiting["updated_at"], waiting["available_at"]) <= 33 + 0.05


def test_a_permanent_error_and_used_up_retries_end_dead_and_can_be_revived(client: Client) -> None:
    hopeless = client.finished(client.submit(payload={"outcome": "permanent"})["task_id"])
    assert (hopeless["status"], hopeless["attempt"]) == ("dead", 1)
    assert (hopeless["error"]["type"], hopeless["error"]["kind"]) == ("InvalidInput", "permanent")
    assert "Traceback" in hopeless["error"]["stack_trace"]

    payload = {"fail_times": 3, "error_type": "TimedOut"}
    tired = client.finished(client.submit(payload=payload, max_retries=1, timeout_seconds=10)["task_id"])
    assert (tired["status"], tired["attempt"], tired["retry_count"]) == ("dead", 2, 1)
    assert tired["error"]["details"]["retries_exhausted"] is True
    assert tired["timeout_seconds"] == 15

    revived = client.retry(tired["task_id"]).raise_for_status().json()
    assert (revived["status"], revived["retry_count"], revived["lane"], revived["error"]) == (
        "queued",
        0,
        "retry",
        None,
    )
    again = client.finished(tired["task_id"])
    assert (again["status"], again["attempt"]) == ("completed", 4)
    refused = client.retry(tired["task_id"])
    assert (refused.status_code, refused.json()["code"]) == (409, "not-revivable")

    with client.stream(tired["task_id"]) as stream:
        told = [(name, data.get("status")) for _, name, data in stream]
    assert told.count(("progress", "dead")) == 1, "the end of an earlier life is told as progress"
    assert told[-1] == ("complete", None)


def test_a_task_that_was_cancelled_before_its_time_is_revived_for_its_time(client: Client) -> None:
    in_time = client.submit(actor="probe", payload={}, delay_seconds=3600, dedupe_key="the-only-one")
    client.cancel(in_time["task_id"])
    revived = client.retry(in_time["task_id"]).raise_for_status().json()
    assert (revived["status"], revived["available_at"]) == ("queued", in_time["available_at"])

    client.cancel(in_time["task_id"])
    another = client.submit(actor="probe", payload={}, delay_seconds=3600, dedupe_key="the-only-one")
    refused = client.retry(in_time["task_id"])
    assert (refused.status_code, refused.json()["code"]) == (409, "duplicate")
    assert another["task_id"] in refused.json()["detail"]


def test_a_task_that_takes_longer_than_its_timeout_is_stopped_and_gets_more_time(client: Client) -> None:
    task_id = client.submit(payload={"seconds": 60}, timeout_seconds=0.4, max_retries=1)["task_id"]
    task = client.finished(task_id)
    assert (task["status"], task["attempt"], task["error"]["type"]) == ("dead", 2, "TimedOut")
    assert task["timeout_seconds"] == pytest.approx(0.6)
    first, second = [event["data"]["elapsed_ms"] for event in client.events(task_id) if "error" in event["data"]]
    assert first >= 400
    assert second >= 600


def test_a_task_too_old_to_start_is_buried(client: Client) -> None:
    task_id = client.submit(max_age_seconds=0.5, delay_seconds=2)["task_id"]
    task = client.finished(task_id)
    assert (task["status"], task["error"]["type"], task["attempt"]) == ("dead", "Expired", 0)


def test_waiting_tasks_are_cancelled_at_once_and_running_ones_when_they_have_stopped(client: Client) -> None:
    waiting = client.submit(delay_seconds=60)["task_id"]
    response = client.cancel(waiting)
    assert (response.status_code, response.json()["status"]) == (200, "cancelled")
    assert client.cancel(waiting).status_code == 200

    running = client.submit(payload={"seconds": 60})["task_id"]
    client.wait_until(running, "running")
    assert client.cancel(running).status_code == 202
    ended = client.finished(running)
    assert (ended["status"], ended["retry_count"]) == ("cancelled", 0)
    assert client.story(running) == ["submit", "claim", "cancel-requested", "cancel"]

    done = client.submit(wait=40)["task_id"]
    refused = client.http.delete(f"/api/v1/tasks/{done}")
    assert (refused.status_code, refused.json()["code"]) == (409, "not-cancellable")


def test_a_cancelled_task_whose_worker_dies_is_cancelled_and_not_retried(windlass: Windlass) -> None:
    client = windlass.client
    task_id = client.submit(payload={"seconds": 60})["task_id"]
    client.wait_until(task_id, "running")
    pid = windlass.workers()[0]["pid"]
    windlass.kill(pid, signal.SIGSTOP)
    assert client.cancel(task_id).status_code == 202
    windlass.kill(pid)
    assert client.finished(task_id)["status"] == "cancelled"
    assert client.story(task_id)[-1] == "cancel"


def test_delays_are_kept_over_a_full_restart(windlass: Windlass) -> None:
    client = windlass.client
    task = client.submit(delay_seconds=4)
    for process in (windlass.api, windlass.dispatcher, windlass.actors, windlass.janitor):
        process.kill()
        process.wait()
    windlass.start_all()
    finished = client.finished(task["task_id"])
    assert finished["status"] == "completed"
    assert finished["started_at"] >= task["available_at"]


def test_under_a_backlog_priority_goes_first_and_then_age(client: Client) -> None:
    first = client.submit(provider="one-by-one", payload={"seconds": 60})["task_id"]
    client.wait_until(first, "running")
    priorities = [4, 2, 0, 4, 2, 0]
    ids = client.submit_many([{"provider": "one-by-one", "priority": priority} for priority in priorities])
    client.cancel(first)
    finished = [client.finished(task_id) for task_id in ids]
    started = [task["task_id"] for task in sorted(finished, key=lambda task: task["started_at"])]
    assert started == [ids[position] for position in (2, 5, 1, 4, 0, 3)]


def test_a_limit_of_one_is_never_exceeded(client: Client) -> None:
    ids = client.submit_many([{"provider": "one-by-one", "payload": {"seconds": 0.05}}] * 10)
    tasks = sorted((client.finished(task_id) for task_id in ids), key=lambda task: task["started_at"])
    for earlier, later in pairwise(tasks):
        assert earlier["completed_at"] <= later["started_at"]


def test_a_task_starts_when_the_last_of_its_dependencies_has_completed(client: Client) -> None:
    client.change_provider("one-by-one", limit=0)
    parents = [client.submit(provider="one-by-one", payload={"seconds": seconds})["task_id"] for seconds in (0.1, 0.2)]
    child = client.submit(depends_on=parents)
    assert (child["status"], child["progress"]["message"]) == ("blocked", "Waiting for dependencies")
    client.change_provider("one-by-one", limit=None)
    finished = client.finished(child["task_id"])
    assert finished["started_at"] >= max(client.get(parent)["completed_at"] for parent in parents)

    client.change_provider("one-by-one", limit=0)
    doomed = client.submit(provider="one-by-one", payload={"outcome": "permanent"})["task_id"]
    orphan = client.submit(depends_on=[doomed])["task_id"]
    client.change_provider("one-by-one", limit=None)
    buried = client.finished(orphan)
    assert (buried["status"], buried["error"]["type"]) == ("dead", "DependencyFailed")
    unknown = client.http.post("/api/v1/tasks", json={"actor": "probe", "depends_on": [str(doomed)[:-4] + "0000"]})
    assert (unknown.status_code, unknown.json()["code"]) == (422, "unknown-dependency")


def test_lists_are_filtered_paged_and_short(client: Client) -> None:
    ids = client.submit_many([{"tags": ["red", str(number)]} for number in range(5)])
    for task_id in ids:
        client.finished(task_id)
    page = client.http.get("/api/v1/tasks", params={"tag": "red", "limit": 3}).json()
    rest = client.http.get("/api/v1/tasks", params={"tag": "red", "limit": 3, "cursor": page["next_cursor"]}).json()
    assert [task["task_id"] for task in page["items"] + rest["items"]] == ids[::-1]
    assert "payload" not in page["items"][0]
    assert "next_cursor" not in rest
    assert [task["task_id"] for task in client.tasks(tag=["red", "2"], status="completed")] == [ids[2]]
    assert client.tasks(tag="red", status=["dead", "cancelled"]) == []


def test_the_stale_sweep_can_be_run_by_hand(windlass: Windlass) -> None:
    client = windlass.client
    windlass.janitor.kill()
    task_id = client.submit(payload={"seconds": 600}, max_retries=0)["task_id"]
    client.wait_until(task_id, "running")
    windlass.actors.send_signal(signal.SIGSTOP)
    windlass.kill(windlass.workers()[0]["pid"])
    lease_end = client.get(task_id)["lease_expires_at"]

    def sweep() -> int:
        answer = client.http.post("/api/v1/tasks/requeue-orphaned", json={}).raise_for_status()
        return int(answer.json()["recovered"])

    assert wait_until("recovered", sweep) == 1
    assert client.finished(task_id)["status"] == "dead"
    recovered_at = client.events(task_id)[-1]["at"]
    assert seconds_between(lease_end, recovered_at) >= 0, "not before the lease has run out, by Postgres' own clock"


def seconds_between(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


# What the version that claimed a task refuses


def write(windlass: Windlass, statement: str, *values: object) -> None:
    async def written() -> None:
        connection = await asyncpg.connect(windlass.environment["WINDLASS_DATABASE_URL"])
        try:
            await connection.execute(statement, *values)
        finally:
            await connection.close()

    asyncio.run(written())


def test_what_its_version_refuses_waits_free_for_one_that_takes_it_and_dies_with_both_names_without(
    windlass: Windlass,
) -> None:
    """Accepted by a version of before, or of tomorrow: here it takes anything, and somebody else runs it."""
    client = windlass.client
    lax = {"name": "probe", "payload_schema": {"type": "object"}}
    write(windlass, "INSERT INTO actor_versions VALUES ('probe', 'lax', $1::text::jsonb)", json.dumps(lax))
    write(
        windlass,
        """
        INSERT INTO workers (worker_id, hostname, pid, queues, capacity, actor_versions, heartbeat_at)
        VALUES ('w-lax', 'h', 1, '{}', 1, '{"probe": "lax"}', now() + interval '1 hour')
        """,
    )
    task_id = client.submit(delay_seconds=600, max_retries=0)["task_id"]
    changed = """UPDATE tasks SET payload = '{"moons": 2}', available_at = now() WHERE task_id = $1::text::uuid"""
    write(windlass, changed, task_id)
    wait_until("handed back twice", lambda: client.get(task_id)["interrupt_count"] >= 2)
    assert set(client.story(task_id)) == {"submit", "claim", "interrupt"}, "and it has cost nothing"
    write(windlass, "UPDATE workers SET state = 'stopped' WHERE worker_id = 'w-lax'")
    dead = client.finished(task_id)
    assert (dead["status"], dead["retry_count"], dead["error"]["type"]) == ("dead", 0, "InvalidInput")
    write(windlass, "DELETE FROM actor_versions")
    said = dead["error"]["message"]
    assert f"version {built_in()['probe'].version} of probe" in said
    assert "/moons" in said
    assert "version lax would take it, and no worker runs that any more" in said

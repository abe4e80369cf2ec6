"""`kill -9` of every kind of process while tasks run: each task completes, once."""

import random
import shutil
import signal
import subprocess
import time

import pytest

from tests.acceptance.conftest import let_the_next_attempt_be_short
from tests.support.installation import KEY, Client, Windlass
from tests.support.pages import COMMANDS, page
from tests.support.waiting import wait_until


@pytest.fixture
def windlass(mended_windlass: Windlass) -> Windlass:
    return mended_windlass


def a_probe_that_runs(windlass: Windlass) -> str:
    """Until it is harmed; begun anew it is short."""
    task_id: str = windlass.client.submit(payload={"seconds": 600})["task_id"]
    windlass.client.wait_until(task_id, "running")
    let_the_next_attempt_be_short(windlass, task_id)
    return task_id


def kill_worker_and_guardian(windlass: Windlass) -> None:
    """Neither sees the other die: both are frozen first."""
    (worker,) = windlass.workers()
    for signum in (signal.SIGSTOP, signal.SIGKILL):
        windlass.actors.send_signal(signum)
        windlass.kill(worker["pid"], signum)


def assert_completed_once(client: Client, task_id: str) -> None:
    task = client.finished(task_id)
    assert task["status"] == "completed", task["error"]
    assert client.story(task_id).count("complete") == 1


def test_a_killed_worker_s_task_is_taken_back_at_once_by_its_successor(stopped_windlass: Windlass) -> None:
    windlass = stopped_windlass
    windlass.environment["WINDLASS_LEASE_SECONDS"] = "60"
    windlass.start_all()
    client = windlass.client
    task_id = a_probe_that_runs(windlass)
    lease_end = client.get(task_id)["lease_expires_at"]
    worker = windlass.workers()[0]
    windlass.kill(worker["pid"])
    task = client.finished(task_id)
    assert (task["status"], task["attempt"], task["retry_count"]) == ("completed", 2, 1)
    assert client.story(task_id) == ["submit", "claim", "stall", "claim", "complete"]
    stalled_at = next(event["at"] for event in client.events(task_id) if event["type"] == "stall")
    assert stalled_at < lease_end, "the guardian's proof makes waiting for the lease unnecessary"
    assert worker["worker_id"] in [lost["worker_id"] for lost in client.workers("lost")]


def test_an_admin_kills_a_task_s_worker_in_a_drill_and_the_task_completes_once(windlass: Windlass) -> None:
    client = windlass.client
    queued = client.submit(delay_seconds=600)["task_id"]
    assert client.http.post(f"/api/v1/tasks/{queued}/kill-worker").status_code == 409, "nobody has it"
    task_id = a_probe_that_runs(windlass)
    attempt = client.get(task_id)["attempt"]
    killed = client.http.post(f"/api/v1/tasks/{task_id}/kill-worker", json={"reason": "to see"})
    assert killed.status_code == 202
    assert (killed.json()["task_id"], killed.json()["attempt"]) == (task_id, attempt)
    (entry,) = client.http.get("/api/v1/audit", params={"limit": 1}).json()["items"]
    said = {"worker_id": killed.json()["worker_id"], "reason": "to see"}
    assert (entry["action"], entry["target"], entry["details"]) == ("task.kill-worker", task_id, said)
    assert_completed_once(client, task_id)
    task = client.get(task_id)
    assert (task["attempt"], task["error_history"][-1]["type"]) == (attempt + 1, "WorkerLost")
    assert client.http.post(f"/api/v1/tasks/{task_id}/kill-worker").json()["code"] == "not-running"


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page calls curl, which is not installed")
def test_who_tries_it_as_the_page_says_sees_what_it_says(windlass: Windlass) -> None:
    """From the first task to the killed worker; the longer task is a little shorter, but for the one that is killed."""
    text = page("trying_it.md").replace("KEY=$(cat .windlass/admin_key)", f"KEY={KEY}")
    first, longer, resumed, history = COMMANDS.findall(text.partition("## A first task")[2].partition("\n## ")[0])
    kill, *_ = COMMANDS.findall(text.partition("## Kill it and see")[2])
    assert '"seconds": 30' in longer
    told = typed(windlass, first + longer.replace('"seconds": 30', '"seconds": 2') + resumed + history)
    assert told.count("event: complete") == 2
    assert '"echo":"hello"' in told
    assert [f"id: {number}\n" in told.partition("event: complete")[0] for number in (1, 2, 3)] == [True] * 3
    submit = longer[: longer.index("curl -N")].replace('"seconds": 30', '"seconds": 600')
    task_id = typed(windlass, f"KEY={KEY}\n{submit}echo $TASK").strip()
    windlass.client.wait_until(task_id, "running")
    let_the_next_attempt_be_short(windlass, task_id)
    told = typed(windlass, f"KEY={KEY} TASK={task_id}\n{kill}")
    assert all(each in told for each in ('"status":"retrying"', "WorkerLost", '"attempt":2'))
    assert told.count("event: complete") == 1
    assert_completed_once(windlass.client, task_id)


def typed(windlass: Windlass, commands: str) -> str:
    script = commands.replace("http://127.0.0.1:8800", windlass.url)
    done = subprocess.run(["sh", "-e", "-c", script], capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_a_drained_worker_finishes_and_another_takes_its_place(windlass: Windlass) -> None:
    client = windlass.client
    (worker,) = windlass.workers()
    short, long = client.submit(payload={"seconds": 0.2, "steps": 50})["task_id"], a_probe_that_runs(windlass)
    drained = client.http.post(f"/api/v1/workers/{worker['worker_id']}/drain", json={"reason": "it leaks"})
    assert drained.status_code == 202
    assert drained.json()["drain_requested_at"] is not None
    assert_completed_once(client, short)
    assert_completed_once(client, long)
    task = client.get(long)
    assert (task["retry_count"], task["interrupt_count"]) == (0, 1), "what did not end in time is handed back, free"
    (stopped,) = wait_until(
        "it has left",
        lambda: [each for each in client.workers("stopped") if each["worker_id"] == worker["worker_id"]],
    )
    assert stopped["stop_reason"] == "drained: it leaks"
    again = client.http.post(f"/api/v1/workers/{worker['worker_id']}/drain")
    assert (again.status_code, again.json()["code"]) == (409, "worker-not-running")


def test_two_dispatchers_side_by_side_start_each_task_once_and_one_is_enough(windlass: Windlass) -> None:
    """Before others are killed: each of them is heard of for a while."""
    client = windlass.client
    second = windlass.start("dispatcher")
    wait_until("both are heard of", lambda: "2 heard" in client.http.get("/health").text)
    ids = client.submit_many([{"payload": {"seconds": 0.02}} for _ in range(60)])
    client.finished(ids[10])
    second.kill()
    for task_id in ids:
        assert_completed_once(client, task_id)
        assert client.story(task_id).count("claim") == 1


def test_a_killed_worker_and_guardian_s_task_completes_once(windlass: Windlass) -> None:
    client = windlass.client
    task_id = a_probe_that_runs(windlass)
    kill_worker_and_guardian(windlass)
    windlass.actors = windlass.start("actors")
    assert_completed_once(client, task_id)
    assert client.get(task_id)["retry_count"] == 1


def test_a_worker_whose_guardian_is_killed_hands_its_task_back(windlass: Windlass) -> None:
    client = windlass.client
    task_id = a_probe_that_runs(windlass)
    windlass.actors.kill()
    client.wait_until(task_id, "queued")
    windlass.actors = windlass.start("actors")
    task = client.finished(task_id)
    assert (task["status"], task["retry_count"], task["interrupt_count"]) == ("completed", 0, 1)


def test_tasks_go_on_after_a_dispatcher_is_killed(windlass: Windlass) -> None:
    client = windlass.client
    windlass.dispatcher.kill()
    windlass.dispatcher.wait()
    ids = client.submit_many([{}] * 20)
    windlass.dispatcher = windlass.start("dispatcher")
    for task_id in ids:
        assert_completed_once(client, task_id)


def test_a_stream_is_resumed_from_another_api_after_the_first_is_killed(windlass: Windlass) -> None:
    client = windlass.client
    other = windlass.start_api()
    task_id = client.submit(payload={"seconds": 1.5, "steps": 6})["task_id"]
    seen = []
    with client.stream(task_id) as stream:
        seen += [next(stream) for _ in range(3)]
        windlass.api.kill()
    with other.stream(task_id, after=seen[-1][0]) as stream:
        seen += list(stream)
    ids = [seq for seq, _, _ in seen]
    assert ids == sorted(set(ids))
    assert seen[-1][1] == "complete"
    told = {event["seq"] for event in other.events(task_id)}
    assert set(ids) == told


def test_a_lost_lease_is_recovered_with_rabbitmq_out_of_reach(windlass: Windlass) -> None:
    client = windlass.client
    windlass.janitor.kill()
    task_id = a_probe_that_runs(windlass)
    kill_worker_and_guardian(windlass)
    nobody = "amqp://nobody:nothing@127.0.0.1:9/"
    windlass.start("janitor", WINDLASS_AMQP_URL=nobody)
    assert client.wait_until(task_id, "retrying")["error"]["type"] == "WorkerLost"


@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_is_killed_whenever_every_task_completes_once(windlass: Windlass, seed: int) -> None:
    """A seeded storm: twelve kills of anything at any moment while sixty short tasks run."""
    client = windlass.start_api()  # the one that the test itself speaks to is spared
    chance = random.Random(seed)
    ids = client.submit_many([{"payload": {"seconds": chance.uniform(0, 0.4)}, "max_retries": 20} for _ in range(60)])
    kinds = ["api", "dispatcher", "janitor", "actors", "worker", "worker"]
    for kind in chance.choices(kinds, k=12):
        time.sleep(chance.uniform(0, 0.3))
        if kind == "worker":
            for worker in windlass.workers(client):
                windlass.kill(worker["pid"])
            continue
        process = getattr(windlass, kind)
        process.send_signal(signal.SIGKILL)
        process.wait()
        setattr(windlass, kind, windlass.start(kind))
    for task_id in ids:
        assert_completed_once(client, task_id)
    running = client.tasks(status="running")
    assert running == []
    wait_until("nothing unaccounted", lambda: "windlass_unaccounted_tasks 0.0" in client.http.get("/metrics").text)

"""Tasks that harm their worker: the process goes, the others lose nothing."""

from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import let_the_next_attempt_be_short
from tests.support.installation import PROJECT, Windlass
from tests.support.waiting import wait_until

EXHAUSTING_ACTOR = Path(__file__).parent / "exhausting_actor"

THREADS = 8


@pytest.fixture
def windlass(mended_windlass: Windlass) -> Windlass:
    return mended_windlass


def a_sibling_at_work(windlass: Windlass) -> str:
    """For as long as its worker lives; begun anew it is short."""
    task_id: str = windlass.client.submit(payload={"seconds": 600})["task_id"]
    windlass.client.wait_until(task_id, "running")
    let_the_next_attempt_be_short(windlass, task_id)
    return task_id


def test_a_task_that_hangs_condemns_its_process_and_its_siblings_are_handed_back(windlass: Windlass) -> None:
    client = windlass.client
    sibling = a_sibling_at_work(windlass)
    hanging = client.submit(payload={"outcome": "hang"}, timeout_seconds=0.5, max_retries=0)["task_id"]
    ended = client.finished(hanging)
    assert (ended["status"], ended["error"]["type"]) == ("dead", "TimedOut")
    saved = client.finished(sibling)
    assert (saved["status"], saved["retry_count"], saved["interrupt_count"]) == ("completed", 0, 1)
    (condemned,) = wait_until(
        "it has left", lambda: [worker["stop_reason"] for worker in client.workers("stopped")], seconds=60
    )
    assert hanging in condemned


def test_a_cancelled_task_that_does_not_listen_is_cancelled_with_its_process(windlass: Windlass) -> None:
    client = windlass.client
    task_id = client.submit(payload={"outcome": "hang"})["task_id"]
    client.wait_until(task_id, "running")
    assert client.cancel(task_id).status_code == 202
    assert client.finished(task_id)["status"] == "cancelled"


def test_a_task_that_always_kills_its_worker_ends_dead_and_takes_nobody_along(windlass: Windlass) -> None:
    client = windlass.client
    others = client.submit_many([{"payload": {"seconds": 0.3}, "delay_seconds": number / 2} for number in range(30)])
    crashing = client.submit(payload={"seconds": 0.1, "outcome": "crash"}, max_retries=2)["task_id"]
    ended = client.finished(crashing)
    assert (ended["status"], ended["attempt"]) == ("dead", 3)
    assert ended["error"]["details"]["retries_exhausted"] is True
    third = [event["data"]["worker_id"] for event in client.events(crashing) if event["type"] == "claim"][2]
    for task_id in others:
        assert client.finished(task_id)["status"] == "completed"
        losses = [event["data"]["error"]["details"] for event in client.events(task_id) if event["type"] == "stall"]
        assert third not in [details["worker_id"] for details in losses], "from the third time on it runs alone"


def kill_the_worker_of(tasks: list[str], windlass: Windlass) -> None:
    """Once it runs all of them; returns when they are taken back."""
    client = windlass.client
    wait_until("all run", lambda: {client.get(each)["status"] for each in tasks} == {"running"}, seconds=60)
    (worker,) = {client.get(each)["worker_id"] for each in tasks}
    (pid,) = [each["pid"] for each in client.workers() if each["worker_id"] == worker]
    windlass.kill(pid)
    wait_until("it is lost", lambda: worker in [each["worker_id"] for each in client.workers("lost")], seconds=60)
    # It is called lost first, and its tasks are taken back then.
    wait_until("they are taken back", lambda: not any(runs_at(worker, client.get(each)) for each in tasks), seconds=60)


def runs_at(worker_id: str, task: dict[str, Any]) -> bool:
    return bool(task["status"] == "running" and task["worker_id"] == worker_id)


def test_of_a_worker_killed_twice_the_suspects_run_one_by_one_and_nobody_else_waits_for_them(
    windlass: Windlass,
) -> None:
    client = windlass.client
    together = client.submit_many([{"payload": {"seconds": 600}}] * THREADS)
    kill_the_worker_of(together, windlass)
    kill_the_worker_of(together, windlass)
    (first,) = wait_until("one of them runs", lambda: client.tasks(status="running"), seconds=60)
    (alone,) = [each for each in client.workers() if each["worker_id"] == first["worker_id"]]
    assert (alone["queues"], alone["capacity"]) == ([], 1)

    others = client.submit_many([{"payload": {"seconds": 600}}] * (THREADS - 1))
    wait_until("the others run", lambda: {client.get(each)["status"] for each in others} == {"running"}, seconds=60)
    assert client.submit(wait=40)["status"] == "completed", "a fresh task finds a thread"

    (_, *waiting) = sorted(together, key=lambda task_id: task_id != first["task_id"])
    assert {client.get(each)["status"] for each in waiting} == {"retrying"}, "none sits as running and does nothing"
    answer = wait_until(
        "it says why",
        lambda: (why := client.why(waiting[0]))["details"].get("runs_alone") and why,
        seconds=60,
    )
    assert answer["reason"] == "behind-others"
    client.cancel(first["task_id"])
    (second,) = wait_until(
        "the next of them runs",
        lambda: [each for each in client.tasks(status="running") if each["task_id"] in waiting],
        seconds=60,
    )
    assert second["worker_id"] == first["worker_id"]

    kill_the_worker_of(others, windlass)
    assert client.get(second["task_id"])["worker_id"] == first["worker_id"], "neither takes the other along"
    assert client.get(second["task_id"])["status"] == "running"
    windlass.actors.terminate()
    windlass.actors.wait(60)
    assert client.tasks(status="running") == [], "both hand back what they run"
    assert client.get(second["task_id"])["interrupt_count"] == 1


def test_a_worker_out_of_descriptors_hands_all_of_its_tasks_back_for_free(stopped_windlass: Windlass) -> None:
    """What it lacks is no task's fault; and what it needs for handing back it has open."""
    windlass, client = stopped_windlass, stopped_windlass.client
    windlass.environment |= {"PYTHONPATH": f"{PROJECT}:{EXHAUSTING_ACTOR}"}
    windlass.start_all()
    sibling = a_sibling_at_work(windlass)
    exhausting = client.submit(payload={"result": "exhaust"}, max_retries=0)["task_id"]
    for task_id in (exhausting, sibling):
        task = client.finished(task_id)
        assert (task["status"], task["attempt"]) == ("completed", 2)
        assert (task["retry_count"], task["interrupt_count"]) == (0, 1)
    (condemned,) = wait_until("it has left", lambda: client.workers("stopped"))
    assert "no file descriptors left" in condemned["stop_reason"]

"""Tasks that harm their worker: the process goes, the others lose nothing."""

from pathlib import Path

from tests.windlass import PROJECT, Windlass

EXHAUSTING_ACTOR = Path(__file__).parent / "exhausting_actor"


def test_a_task_that_hangs_condemns_its_process_and_its_siblings_are_handed_back(windlass: Windlass) -> None:
    client = windlass.client
    sibling = client.submit(payload={"seconds": 3})["task_id"]
    hanging = client.submit(payload={"outcome": "hang"}, timeout_seconds=0.5, max_retries=0)["task_id"]
    ended = client.finished(hanging)
    assert (ended["status"], ended["error"]["type"]) == ("dead", "WorkerLost")
    saved = client.finished(sibling)
    assert (saved["status"], saved["retry_count"], saved["interrupt_count"]) == ("completed", 0, 1)
    condemned = [worker["stop_reason"] for worker in client.workers("stopped")]
    assert len(condemned) == 1
    assert hanging in condemned[0]


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
        task = client.finished(task_id)
        assert task["status"] == "completed"
        losses = [event["data"]["error"]["details"] for event in client.events(task_id) if event["type"] == "stall"]
        assert third not in [details["worker_id"] for details in losses], "from the third time on it runs alone"


def test_a_worker_out_of_descriptors_hands_all_of_its_tasks_back_for_free(stopped_windlass: Windlass) -> None:
    """What it lacks is no task's fault; and what it needs for handing back it has open."""
    windlass, client = stopped_windlass, stopped_windlass.client
    windlass.environment |= {"PYTHONPATH": f"{PROJECT}:{EXHAUSTING_ACTOR}"}
    windlass.start_all()
    sibling = client.submit(payload={"seconds": 3})["task_id"]
    client.wait_until(sibling, "running")
    exhausting = client.submit(payload={"result": "exhaust"}, max_retries=0)["task_id"]
    for task_id in (exhausting, sibling):
        task = client.finished(task_id)
        assert (task["status"], task["attempt"]) == ("completed", 2)
        assert (task["retry_count"], task["interrupt_count"]) == (0, 1)
    (condemned,) = client.workers("stopped")
    assert "no file descriptors left" in condemned["stop_reason"]

"""A worker's signals: two may come at once, the second while the main thread leaves the wait for the first."""

import threading

from windlass.services.actors.main import WorkerProcess


def test_only_the_first_signal_touches_the_event_that_is_waited_for() -> None:
    worker = WorkerProcess.__new__(WorkerProcess)
    worker._stop, worker._is_hurried, worker.stop_reason = threading.Event(), False, None
    worker._told_to_stop("told to stop")
    assert worker._stop.is_set()
    with vars(worker._stop)["_cond"]:  # as whoever wakes up holds it
        second = threading.Thread(
            target=worker._told_to_stop, args=("told to stop at once",), kwargs={"at_once": True}, daemon=True
        )
        second.start()
        second.join(10)
        assert not second.is_alive(), "it waits for who waits for it"
    assert vars(worker)["stop_reason"] == "told to stop"
    assert vars(worker)["_is_hurried"]

"""Somebody outside keeps a task's row locked: that task waits, and nobody else notices."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.acceptance.conftest import LEASE_SECONDS, let_the_next_attempt_be_short
from tests.support.engine.store_from_threads import held_up
from tests.support.installation import Windlass
from tests.support.waiting import wait_until

LONGER_THAN_A_LEASE = LEASE_SECONDS + 1
LOCK = """
    SET LOCAL idle_in_transaction_session_timeout = 0;
    SELECT 1 FROM tasks WHERE task_id = '{}' FOR UPDATE
"""


@contextmanager
def locked_by_a_stranger(windlass: Windlass, task_id: str) -> Iterator[None]:
    with held_up(windlass.environment["WINDLASS_DATABASE_URL"], LOCK.format(task_id)):
        yield


def has_begun(windlass: Windlass, task_id: str) -> None:
    wait_until(f"{task_id} has begun", lambda: windlass.client.get(task_id)["attempt"] == 1)


def test_a_locked_row_holds_up_its_own_task_alone(running_windlass: Windlass) -> None:
    windlass, client = running_windlass, running_windlass.client
    quick = [{"payload": {"seconds": 4, "steps": 4}}] * 3
    slow = [{"payload": {"seconds": LONGER_THAN_A_LEASE, "steps": 20}}] * 3
    locked, *others = client.submit_many([*quick, *slow])
    for task_id in others:
        has_begun(windlass, task_id)
    client.wait_until(locked, "running")
    worker = client.workers()[0]
    with locked_by_a_stranger(windlass, locked):
        late = client.submit(provider="one-by-one", payload={"seconds": 0.1})["task_id"]
        for task_id in (*others, late):
            task = client.finished(task_id)
            assert (task["status"], task["attempt"]) == ("completed", 1)
            assert client.story(task_id).count("claim") == 1
        assert client.get(locked)["status"] == "running"
    assert client.finished(locked)["status"] == "completed"
    assert client.workers()[0]["worker_id"] == worker["worker_id"], "nobody had to be killed for it"


def test_an_attempt_whose_row_stays_locked_is_handed_back_when_it_is_free(running_windlass: Windlass) -> None:
    windlass, client = running_windlass, running_windlass.client
    locked, other = client.submit_many([{"payload": {"seconds": seconds}} for seconds in (600, LONGER_THAN_A_LEASE)])
    has_begun(windlass, other)
    client.wait_until(locked, "running")
    let_the_next_attempt_be_short(windlass, locked)
    with locked_by_a_stranger(windlass, locked):
        wait_until("it is stopped", lambda: f"{locked}: stopping it" in windlass.log())
        assert client.finished(other)["attempt"] == 1
    task = client.finished(locked)
    assert (task["status"], task["attempt"]) == ("completed", 2)

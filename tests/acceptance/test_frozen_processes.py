"""Processes that are frozen, not dead: nothing that they held goes on after somebody else has taken it."""

import signal
from collections.abc import Iterator
from datetime import datetime

import httpx
import pytest

from tests.acceptance.conftest import a_windlass_apart, let_the_next_attempt_be_short
from tests.support.installation import Windlass
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until
from windlass.shared.process.procfs import ProcessIdentity

# Between the guardian's deadline and the lease's end there is time for a busy machine to see it.
LEASE, MARGIN = "14", "8"


@pytest.fixture(scope="module")
def installation(
    servers: Servers, migrated_template: str, management: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Windlass]:
    directory = tmp_path_factory.mktemp("frozen")
    with a_windlass_apart(
        servers,
        migrated_template,
        management,
        directory,
        WINDLASS_LEASE_SECONDS=LEASE,
        WINDLASS_LEASE_MARGIN_SECONDS=MARGIN,
    ) as windlass:
        windlass.start_all()
        yield windlass


@pytest.fixture
def windlass(installation: Windlass) -> Windlass:
    installation.mend()
    return installation


def test_a_frozen_worker_is_ended_by_its_guardian_before_its_lease_ends(windlass: Windlass) -> None:
    client = windlass.client
    task_id = client.submit(payload={"seconds": 600})["task_id"]
    client.wait_until(task_id, "running")
    let_the_next_attempt_be_short(windlass, task_id)
    pid = windlass.workers()[0]["pid"]
    frozen = ProcessIdentity.of(pid)
    assert frozen is not None
    windlass.kill(pid, signal.SIGSTOP)
    lease_end = client.get(task_id)["lease_expires_at"]
    wait_until("the guardian ends it", lambda: not frozen.is_running())
    task = client.finished(task_id)
    assert (task["status"], task["attempt"]) == ("completed", 2)
    (proof,) = [event["data"]["proof"] for event in client.events(task_id) if event["type"] == "stall"]
    assert proof["by"] == "guardian"
    assert datetime.fromisoformat(proof["none_left_at"]) < datetime.fromisoformat(lease_end)


def test_a_worker_thawed_after_its_lease_is_refused_everything(windlass: Windlass) -> None:
    """Worker and guardian frozen together past the lease: another worker finishes, and the old one changes nothing."""
    client = windlass.client
    task_id = client.submit(payload={"seconds": 120, "steps": 2400})["task_id"]
    client.wait_until(task_id, "running")
    let_the_next_attempt_be_short(windlass, task_id)
    frozen = windlass.workers()[0]
    process = ProcessIdentity.of(frozen["pid"])
    assert process is not None
    windlass.actors.send_signal(signal.SIGSTOP)
    windlass.kill(frozen["pid"], signal.SIGSTOP)
    windlass.start("actors")
    finished = client.finished(task_id)
    assert (finished["status"], finished["attempt"]) == ("completed", 2)
    assert finished["worker_id"] != frozen["worker_id"]
    story = client.events(task_id)
    stalled = next(event["seq"] for event in story if event["type"] == "stall")
    assert all(event["attempt"] == 2 for event in story if event["seq"] > stalled)

    # The worker alone is thawed first: it reports and ends what it believes to be its own, and is refused.
    windlass.kill(frozen["pid"], signal.SIGCONT)
    wait_until("it was refused", lambda: "had lost it; its end is dropped" in windlass.log())
    windlass.actors.send_signal(signal.SIGCONT)
    wait_until("the guardian, thawed, ends the worker that missed its deadline", lambda: not process.is_running())
    assert client.events(task_id) == story
    assert client.get(task_id) == finished

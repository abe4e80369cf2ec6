"""The worker dies at every step of an order, and the other side still sees one."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.failpoints.arming import Failpoints
from tests.support.failpoints.catalogue import OF_MEDIA
from tests.support.media_installation import Studio, a_studio
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def studio(
    servers: Servers, migrated_template: str, management: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Studio]:
    directory = tmp_path_factory.mktemp("studio")
    environment = Failpoints(directory / "failpoints").environment
    with a_studio(servers, migrated_template, management, directory, actors=("media",), **environment) as studio:
        yield studio


@pytest.fixture(autouse=True)
def patient_guardian(studio: Studio) -> Iterator[None]:
    """A guardian whose workers die again and again lets the next one wait; each test has a guardian of its own."""
    yield
    studio.windlass.actors.terminate()
    studio.windlass.actors.wait(60)
    studio.windlass.actors = studio.windlass.start("actors")


@pytest.mark.parametrize("failpoint", OF_MEDIA)
def test_killed_at_any_step_it_is_ordered_once_and_finished(studio: Studio, failpoint: str) -> None:
    before = studio.files()
    studio.windlass.failpoints.kill(failpoint)
    task_id = studio.order()
    studio.windlass.failpoints.wait_until_spent(failpoint)
    task = studio.client.finished(task_id)
    assert (task["status"], task["attempt"]) == ("completed", 2), task["error"]
    assert len(studio.orders_of(task_id)) == 1
    assert studio.client.story(task_id).count("complete") == 1
    number = len(before) + len(task["result"]["content_ids"])
    wait_until("nothing else is left", lambda: len(studio.files()) == number)
    assert studio.fake.books("leonardo")["most_running"] == 1


@pytest.mark.parametrize("failpoint", ["media-ordered", "media-job-known"])
def test_nobody_starts_beside_a_job_that_lost_its_worker(studio: Studio, failpoint: str) -> None:
    """Midjourney takes one job at a time, and cannot be asked what became of an order."""
    studio.windlass.failpoints.kill(failpoint)
    first = studio.order("[[seconds=1]]", provider="midjourney")
    studio.windlass.failpoints.wait_until_spent(failpoint)
    second = studio.order(provider="midjourney")
    ended = {task_id: studio.client.finished(task_id) for task_id in (first, second)}
    assert len(studio.orders_of(first)) == 1
    assert ended[first]["status"] in {"completed", "dead"}
    assert ended[second]["status"] == "completed"
    assert studio.fake.books("midjourney")["most_running"] == 1
    wait_until("no slot is held", lambda: studio.slots("midjourney") == [])

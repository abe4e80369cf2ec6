"""Pictures and films, ordered once, fetched safely and kept; the other side's books say so."""

import io
from collections.abc import Iterator

import httpx
import pytest
from PIL import Image

from tests.support.media_installation import Studio, a_studio
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def studio(
    servers: Servers, migrated_template: str, management: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Studio]:
    with a_studio(servers, migrated_template, management, tmp_path_factory.mktemp("studio")) as studio:
        yield studio


@pytest.mark.parametrize("provider", ["leonardo", "midjourney"])
def test_a_picture_that_one_can_open(studio: Studio, provider: str) -> None:
    task = studio.client.finished(studio.order(provider=provider))
    assert task["status"] == "completed", task["error"]
    assert len(task["result"]["urls"]) == len(task["result"]["content_ids"]) > 0
    for url in task["result"]["urls"]:
        answer = httpx.get(url, timeout=60, trust_env=False)
        assert answer.status_code == 200
        with Image.open(io.BytesIO(answer.content)) as picture:
            picture.verify()
    assert len(studio.orders_of(task["task_id"])) == 1
    assert task["provider_job_id"]


def test_a_film_from_a_picture_that_windlass_keeps(studio: Studio) -> None:
    picture = studio.client.finished(studio.order())["result"]["content_ids"][0]
    film = studio.client.finished(studio.order(payload={"action": "img2vid", "source_image": picture}))
    assert film["status"] == "completed", film["error"]
    shown = httpx.get(film["result"]["urls"][0], timeout=60, trust_env=False)
    assert shown.headers["content-type"] in {"image/gif", "video/mp4"}


def test_nobody_begins_with_a_picture_of_somebody_elses(studio: Studio) -> None:
    mine = studio.client.finished(studio.order(user_id="ann"))["result"]["content_ids"][0]
    payload = {"action": "img2img", "source_image": mine}
    theirs = studio.client.finished(studio.order(user_id="bob", payload=payload))
    assert (theirs["status"], theirs["error"]["type"]) == ("dead", "InvalidInput")


def test_progress_is_the_providers_own(studio: Studio) -> None:
    task_id = studio.order("[[percent]] [[seconds=1]]")
    studio.client.finished(task_id)
    said = [event["data"]["progress"] for event in studio.client.events(task_id) if event["type"] == "progress"]
    assert {"Generating", "Fetching file 1 of 1"} & {each["message"] for each in said}
    assert [each["elapsed_ms"] for each in said] == sorted(each["elapsed_ms"] for each in said)


def test_the_story_of_a_run_is_listed_with_its_files(studio: Studio) -> None:
    task_id = studio.order(payload={"workflow_run_id": "run-7", "source_data": {"scene": 3}, "prompt_id": "p1"})
    task = studio.client.finished(task_id)
    (generation,) = studio.client.http.get("/api/v1/workflow-runs/run-7/media").json()["items"]
    assert generation["generation_id"] == task["result"]["generation_id"]
    assert (generation["source_data"], generation["operation"]) == ({"scene": 3}, "txt2img")
    assert [each["content_id"] for each in generation["contents"]] == task["result"]["content_ids"]


def test_a_callback_comes_before_the_next_poll(studio: Studio) -> None:
    task = studio.client.finished(studio.order(provider="patient"), seconds=50)
    assert task["status"] == "completed", "it polls once a minute: only the callback can have told it"


def test_what_a_callback_says_is_not_believed(studio: Studio) -> None:
    task_id = studio.order("[[forged-callback]] [[seconds=1]]", provider="midjourney")
    task = studio.client.finished(task_id)
    assert task["status"] == "completed"
    (order,) = studio.orders_of(task_id)
    assert task["provider_job_id"] == order["job_id"]


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ("moderated", "ContentRejected"),
        ("[[fail]]", None),
        ("[[oversize=250000000]]", "ResultTooLarge"),
        ("[[redirect=http://169.254.169.254/latest]]", "Forbidden"),
    ],
)
def test_what_cannot_be_had_is_buried_and_leaves_nothing(studio: Studio, script: str, kind: str | None) -> None:
    before = studio.files()
    task = studio.client.finished(studio.order(script, max_retries=0))
    assert task["status"] == "dead"
    assert kind is None or task["error"]["type"] == kind, task["error"]
    wait_until("nothing is left", lambda: studio.files() == before)
    wait_until("no slot is held", lambda: studio.slots("leonardo") == [])


def test_a_busy_provider_pauses_and_costs_no_retry(studio: Studio) -> None:
    studio.fake.script("midjourney", "429=1")
    task = studio.client.finished(studio.order(provider="midjourney"))
    assert (task["status"], task["retry_count"]) == ("completed", 0)


# Orders whose fate is not known


def test_an_order_whose_answer_was_lost_is_found_again(studio: Studio) -> None:
    task = studio.client.finished(studio.order("[[drop-after]]"))
    assert task["status"] == "completed", task["error"]
    assert len(studio.orders_of(task["task_id"])) == 1


@pytest.mark.parametrize(("fault", "kind"), [("drop-before", "NetworkTimeout"), ("500", "ServiceUnavailable")])
def test_an_order_that_never_arrived_is_sent_again(studio: Studio, fault: str, kind: str) -> None:
    studio.fake.script("leonardo", fault)
    task_id = studio.order()
    task = studio.client.finished(task_id)
    assert "retry" in studio.client.story(task_id)
    assert [error["type"] for error in task["error_history"]] == [kind]
    assert task["status"] == "completed", task["error"]
    assert len(studio.orders_of(task_id)) == 1


def test_an_order_that_cannot_be_asked_for_is_waited_for(studio: Studio) -> None:
    task = studio.client.finished(studio.order("[[drop-after]] [[seconds=1]]", provider="patient"), seconds=50)
    assert (task["status"], task["attempt"]) == ("completed", 1), task["error"]
    assert len(studio.orders_of(task["task_id"])) == 1
    assert task["usage"] == {"cost_usd": 0.25, "prompt_tokens": None, "completion_tokens": None}


def test_a_callback_that_comes_too_late_revives_the_task_and_nothing_is_paid_for_twice(studio: Studio) -> None:
    task_id = studio.order("[[drop-after]] [[callback-late=4]]", provider="midjourney")
    studio.client.wait_until(task_id, "completed")
    story = [event for event in studio.client.events(task_id) if event["type"] in {"bury", "revive", "complete"}]
    assert [event["type"] for event in story] == ["bury", "revive", "complete"]
    assert story[0]["data"]["error"]["type"] == "SubmitUnknown"
    assert len(studio.orders_of(task_id)) == 1
    assert len(studio.client.get(task_id)["result"]["content_ids"]) > 0


def test_where_nobody_can_tell_the_task_is_buried_and_not_paid_for_twice(studio: Studio) -> None:
    task_id = studio.order("[[drop-after]] [[no-callback]]", provider="midjourney")
    task = studio.client.finished(task_id)
    assert (task["status"], task["error"]["type"], task["error"]["kind"]) == ("dead", "SubmitUnknown", "permanent")
    assert len(studio.orders_of(task_id)) == 1


def test_an_operator_may_rather_order_twice(studio: Studio) -> None:
    studio.fake.script("midjourney", "drop-after", "no-callback")
    task_id = studio.order(provider="stubborn")
    task = studio.client.finished(task_id)
    assert (task["status"], task["attempt"]) == ("completed", 2)
    assert len(studio.orders_of(task_id)) == 2


# Cancelling


def test_a_cancelled_task_calls_its_job_off(studio: Studio) -> None:
    task_id = studio.order("[[seconds=30]]")
    wait_until("the job is known", lambda: studio.client.get(task_id)["provider_job_id"])
    studio.client.cancel(task_id)
    studio.client.wait_until(task_id, "cancelled")
    (order,) = studio.orders_of(task_id)
    assert order["state"] == "cancelled"
    assert studio.slots("leonardo") == []


def test_a_job_that_cannot_be_called_off_keeps_its_slot_until_it_ends(studio: Studio) -> None:
    studio.fake.reset()
    task_id = studio.order("[[seconds=4]]", provider="midjourney")
    wait_until("the job is known", lambda: studio.client.get(task_id)["provider_job_id"])
    studio.client.cancel(task_id)
    studio.client.wait_until(task_id, "cancelled")
    assert [slot["task_id"] for slot in studio.slots("midjourney")] == [task_id]
    studio.client.finished(studio.order(provider="midjourney"))
    assert studio.fake.books("midjourney")["most_running"] == 1

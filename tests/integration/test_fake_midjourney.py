"""The fake midapi, against the bodies that its documentation shows."""

import io
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from PIL import Image

from tests.support.providers import provider_bodies
from tests.support.providers.callback_listener import callback_listener
from tests.support.providers.fake_providers import FakeProviders
from tests.support.providers.provider_bodies import differences
from tests.support.waiting import wait_until


@pytest.fixture
def midapi(fake: FakeProviders) -> Iterator[httpx.Client]:
    with fake.client("midjourney") as client:
        yield client


def order(client: httpx.Client, prompt: str, **fields: Any) -> str:
    answer = client.post("/api/v1/mj/generate", json={"taskType": "mj_txt2img", "prompt": prompt, **fields})
    assert differences(provider_bodies.MIDAPI_ORDERED, answer.json()) == []
    task_id: str = answer.json()["data"]["taskId"]
    return task_id


def record(client: httpx.Client, task_id: str) -> Any:
    return client.get("/api/v1/mj/record-info", params={"taskId": task_id}).raise_for_status().json()


def finished(client: httpx.Client, task_id: str) -> Any:
    return wait_until(f"{task_id} ended", lambda: (found := record(client, task_id))["data"]["successFlag"] and found)


def test_an_order_is_generating_and_then_has_four_images(midapi: httpx.Client) -> None:
    task_id = order(midapi, "a lighthouse [[pending=1]]", aspectRatio="16:9")
    generating = record(midapi, task_id)["data"]
    assert (generating["successFlag"], generating["resultInfoJson"], generating["completeTime"]) == (0, None, None)
    success = record(midapi, task_id)
    assert differences(provider_bodies.MIDAPI_RECORD, success) == []
    assert json.loads(success["data"]["paramJson"])["prompt"] == "a lighthouse [[pending=1]]"
    urls = [result["resultUrl"] for result in success["data"]["resultInfoJson"]["resultUrls"]]
    assert len(set(urls)) == 4
    assert urls[0].endswith(".jpeg")
    file = httpx.get(urls[0], trust_env=False)
    assert file.headers["content-type"] == "image/jpeg"
    with Image.open(io.BytesIO(file.content)) as picture:
        assert (picture.format, picture.size) == ("JPEG", (320, 180))


@pytest.mark.parametrize(("word", "flag"), [("fail", 2), ("fail=3", 3), ("fail-moderated", 2)])
def test_a_job_may_fail(midapi: httpx.Client, word: str, flag: int) -> None:
    failed = finished(midapi, order(midapi, f"a lighthouse [[{word}]]"))["data"]
    assert (failed["successFlag"], failed["resultInfoJson"]) == (flag, None)
    assert failed["errorCode"] in {422, 500}
    assert failed["errorMessage"]


def test_the_end_is_called_back_with_plain_strings(fake: FakeProviders, midapi: httpx.Client) -> None:
    with callback_listener() as listener:
        task_id = order(midapi, "a lighthouse", callBackUrl=f"{listener.url}/done/secret")
        wait_until("called back", lambda: fake.books("midjourney")["callbacks"])
    (heard,) = listener.heard
    assert heard.path == "/done/secret"
    assert differences(provider_bodies.MIDAPI_CALLBACK, heard.body) == []
    objects = record(midapi, task_id)["data"]["resultInfoJson"]["resultUrls"]
    assert heard.body["data"]["resultUrls"] == [each["resultUrl"] for each in objects]
    assert fake.books("midjourney")["callbacks"][0]["status"] == "200"


def test_an_end_is_told_once_however_often_it_is_asked_for(fake: FakeProviders, midapi: httpx.Client) -> None:
    with callback_listener() as listener:
        first = order(midapi, "a lighthouse [[pending=0]]", callBackUrl=f"{listener.url}/first")
        record(midapi, first)
        wait_until("called back", lambda: fake.books("midjourney")["callbacks"])
        record(midapi, first)
        order(midapi, "a later one", callBackUrl=f"{listener.url}/later")
        wait_until("called back", lambda: len(fake.books("midjourney")["callbacks"]) == 2)
    assert [heard.path for heard in listener.heard] == ["/first", "/later"]


def test_callbacks_that_fail_come_twice_never_or_from_somebody_else(fake: FakeProviders, midapi: httpx.Client) -> None:
    with callback_listener() as listener:
        order(midapi, "silent [[no-callback]]", callBackUrl=f"{listener.url}/silent")
        order(midapi, "twice [[callback-twice]]", callBackUrl=f"{listener.url}/twice")
        order(midapi, "failing [[fail]]", callBackUrl=f"{listener.url}/failing")
        forged = order(midapi, "forged [[forged-callback]] [[seconds=60]]", callBackUrl=f"{listener.url}/forged")
        wait_until("four callbacks", lambda: len(listener.heard) == 4)
        wait_until("all has ended", lambda: fake.books("midjourney")["running"] == 1)
    heard = {each.path: each.body for each in listener.heard}
    assert sorted(each.path for each in listener.heard) == ["/failing", "/forged", "/twice", "/twice"]
    assert (heard["/failing"]["code"], heard["/failing"]["data"]["resultUrls"]) == (500, [])
    assert heard["/forged"]["code"] == 200, "it says that the job is done"
    assert record(midapi, forged)["data"]["successFlag"] == 0, "and it is not"


@pytest.mark.parametrize(
    ("key", "body", "http_status", "code"),
    [
        (None, {}, 200, 401),
        ("bad-key", {}, 200, 401),
        ("no-credit", {}, 200, 402),
        ("a-key", {"prompt": "something moderated"}, 200, 422),
        ("a-key", {"prompt": ""}, 200, 422),
        ("a-key", {"taskType": "mj_img2img"}, 200, 422),
        ("a-key", {"taskType": "mj_dance"}, 200, 422),
        ("a-key", {"prompt": "a [[500]]"}, 500, 500),
        ("a-key", {"prompt": "a [[429=3]]"}, 429, 429),
        ("a-key", {"prompt": "a [[body-code=429]]"}, 200, 429),
    ],
)
def test_refusals(fake: FakeProviders, key: str | None, body: Any, http_status: int, code: int) -> None:
    with fake.client("midjourney", key) as client:
        answer = client.post("/api/v1/mj/generate", json={"taskType": "mj_txt2img", "prompt": "a lighthouse", **body})
    assert (answer.status_code, answer.json()["code"], answer.json()["data"]) == (http_status, code, None)
    assert set(answer.json()) == {"code", "msg", "data"}
    assert answer.headers.get("retry-after") == ("3" if http_status == 429 else None)
    assert fake.books("midjourney")["number_of_orders"] == 0


def test_an_unknown_job_has_no_record(midapi: httpx.Client) -> None:
    assert record(midapi, "mj_task_000000000000")["data"] is None


def test_a_film_is_a_film(midapi: httpx.Client) -> None:
    task_id = order(midapi, "waves", taskType="mj_video", fileUrls=["https://pictures.example/a.png"])
    (film,) = finished(midapi, task_id)["data"]["resultInfoJson"]["resultUrls"]
    assert httpx.get(film["resultUrl"], trust_env=False).headers["content-type"] == "image/gif"

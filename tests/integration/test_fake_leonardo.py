"""The fake Leonardo, against the bodies that its documentation shows."""

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
def leonardo(fake: FakeProviders) -> Iterator[httpx.Client]:
    with fake.client("leonardo") as client:
        yield client


def order(client: httpx.Client, prompt: str, **fields: Any) -> str:
    answer = client.post("/generations", json={"prompt": prompt, **fields})
    assert differences(provider_bodies.LEONARDO_ORDERED, answer.json()) == []
    job_id: str = answer.json()["sdGenerationJob"]["generationId"]
    return job_id


def generation(client: httpx.Client, job_id: str) -> dict[str, Any]:
    answer: dict[str, Any] = client.get(f"/generations/{job_id}").raise_for_status().json()
    return answer


def finished(client: httpx.Client, job_id: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        found = generation(client, job_id)
        return found if found["generations_by_pk"]["status"] != "PENDING" else None

    return wait_until(f"job {job_id} ended", look)


def test_an_order_is_pending_and_then_has_images_that_can_be_opened(leonardo: httpx.Client) -> None:
    job_id = order(leonardo, "a lighthouse [[pending=2]]", num_images=2, width=512, height=256)
    pending = [generation(leonardo, job_id)["generations_by_pk"] for _ in range(2)]
    assert [(each["status"], each["generated_images"]) for each in pending] == [("PENDING", [])] * 2
    complete = generation(leonardo, job_id)
    assert differences(provider_bodies.LEONARDO_COMPLETE, complete) == []
    images = complete["generations_by_pk"]["generated_images"]
    assert len({image["url"] for image in images}) == 2
    for image in images:
        file = httpx.get(image["url"], trust_env=False)
        assert file.headers["content-type"] == "image/png"
        with Image.open(io.BytesIO(file.content)) as picture:
            assert (picture.format, picture.size) == ("PNG", (320, 160))


def test_it_may_fail_or_say_how_far_it_is(leonardo: httpx.Client) -> None:
    failed = finished(leonardo, order(leonardo, "a lighthouse [[fail]]"))["generations_by_pk"]
    assert (failed["status"], failed["generated_images"]) == ("FAILED", [])
    job_id = order(leonardo, "a lighthouse [[percent]] [[seconds=20]]")
    first = generation(leonardo, job_id)["generations_by_pk"]["progress"]
    wait_until("more", lambda: generation(leonardo, job_id)["generations_by_pk"]["progress"] > first)


def test_what_is_not_there(leonardo: httpx.Client) -> None:
    assert generation(leonardo, "00000000-0000-4000-8000-000000000000") == provider_bodies.LEONARDO_UNKNOWN
    assert leonardo.delete("/generations/nothing").json() == {"delete_generations_by_pk": None}


def test_a_deleted_job_is_cancelled_and_gone(fake: FakeProviders, leonardo: httpx.Client) -> None:
    job_id = order(leonardo, "a lighthouse [[seconds=60]]")
    assert fake.books("leonardo")["running"] == 1
    answer = leonardo.delete(f"/generations/{job_id}")
    assert differences(provider_bodies.LEONARDO_DELETED, answer.json()) == []
    assert generation(leonardo, job_id) == provider_bodies.LEONARDO_UNKNOWN
    books = fake.books("leonardo")
    assert (books["running"], books["cancelled"], books["orders"][0]["state"]) == (0, 1, "cancelled")


def test_all_orders_of_the_user_are_listed_newest_first(leonardo: httpx.Client) -> None:
    ordered = [order(leonardo, f"lighthouse {number}") for number in range(3)]
    me = leonardo.get("/me").json()
    assert differences(provider_bodies.LEONARDO_ME, me) == []
    path = f"/generations/user/{me['user_details'][0]['user']['id']}"
    listed = leonardo.get(path, params={"offset": 0, "limit": 2}).json()["generations"]
    assert [each["id"] for each in listed] == ordered[:0:-1]
    assert [each["prompt"] for each in listed] == ["lighthouse 2", "lighthouse 1"]
    assert [each["id"] for each in leonardo.get(path, params={"offset": 2}).json()["generations"]] == ordered[:1]
    assert leonardo.get("/generations/user/somebody-else").json() == {"generations": []}


@pytest.mark.parametrize(
    ("key", "status", "body"),
    [(None, 401, provider_bodies.LEONARDO_NO_KEY), ("bad-key", 401, provider_bodies.LEONARDO_BAD_KEY)],
)
def test_keys_that_are_not_taken(fake: FakeProviders, key: str | None, status: int, body: Any) -> None:
    with fake.client("leonardo", key) as client:
        answer = client.post("/generations", json={"prompt": "a lighthouse"})
    assert (answer.status_code, answer.json()) == (status, body)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"prompt": "a lighthouse", "alchemy": "true"}, 400),
        ({"prompt": "a lighthouse", "width": 1000}, 200),
        ({"prompt": "a lighthouse", "width": 1001}, 400),
        ({"prompt": "a lighthouse", "num_images": 5}, 400),
        ({"prompt": "a lighthouse", "init_image_id": "nothing"}, 400),
        ({"prompt": "a moderated lighthouse"}, 403),
        ({"prompt": "a lighthouse [[429]]"}, 429),
        ({"prompt": "a lighthouse [[504]]"}, 504),
    ],
)
def test_orders_that_are_refused(fake: FakeProviders, leonardo: httpx.Client, body: Any, status: int) -> None:
    answer = leonardo.post("/generations", json=body)
    assert answer.status_code == status
    assert fake.books("leonardo")["number_of_orders"] == (status == 200)
    if status != 200:
        assert set(answer.json()) == {"error", "path", "code"}


def test_no_credit(fake: FakeProviders) -> None:
    with fake.client("leonardo", "no-credit") as client:
        assert client.post("/generations", json={"prompt": "a lighthouse"}).status_code == 402


def test_a_picture_is_uploaded_and_becomes_a_film(leonardo: httpx.Client) -> None:
    place = leonardo.post("/init-image", json={"extension": "png"}).json()
    assert differences(provider_bodies.LEONARDO_UPLOAD, place) == []
    upload = place["uploadInitImage"]
    order_film = {"imageId": upload["id"], "imageType": "UPLOADED", "prompt": "waves"}
    assert leonardo.post("/generations-image-to-video", json=order_film).status_code == 400, "nothing is there yet"
    fields = json.loads(upload["fields"])
    forged = httpx.post(upload["url"], data={**fields, "Policy": "mine"}, files={"file": b"picture"}, trust_env=False)
    assert forged.status_code == 403
    httpx.post(upload["url"], data=fields, files={"file": b"picture"}, trust_env=False).raise_for_status()

    ordered = leonardo.post("/generations-image-to-video", json=order_film).json()
    assert differences({"motionVideoGenerationJob": {"generationId": "…"}}, ordered) == []
    complete = finished(leonardo, ordered["motionVideoGenerationJob"]["generationId"])
    (film,) = complete["generations_by_pk"]["generated_images"]
    file = httpx.get(film["motionMP4URL"], trust_env=False)
    assert file.headers["content-type"] == "image/gif"
    with Image.open(io.BytesIO(file.content)) as picture:
        assert getattr(picture, "n_frames", 1) > 1

    body = {"imageId": upload["id"], "isInitImage": True, "motionStrength": 3}
    ordered = leonardo.post("/generations-motion-svd", json=body).json()
    assert differences({"motionSvdGenerationJob": {"generationId": "…"}}, ordered) == []
    assert leonardo.post("/generations", json={"prompt": "a", "init_image_id": upload["id"]}).status_code == 200
    assert leonardo.post("/init-image", json={"extension": "exe"}).json()["error"] == "invalid file extension"


def test_the_webhook_of_the_account_is_told_of_success_alone(fake: FakeProviders, leonardo: httpx.Client) -> None:
    with callback_listener() as listener:
        fake.change(leonardo_webhook={"url": f"{listener.url}/leonardo", "key": "a-webhook-key"})
        order(leonardo, "a lighthouse [[fail]]")
        job_id = order(leonardo, "a lighthouse [[seconds=0.3]]", num_images=1)
        wait_until("told", lambda: fake.books("leonardo")["callbacks"])
    (heard,) = listener.heard
    assert (heard.path, heard.authorization) == ("/leonardo", "Bearer a-webhook-key")
    assert differences(provider_bodies.LEONARDO_WEBHOOK, heard.body) == []
    told = heard.body["data"]["object"]
    assert (told["id"], told["images"][0]["generationId"]) == (job_id, job_id)
    assert "generated_images" not in told
    assert told["apiKey"]["webhookCallbackApiKey"] == "a-webhook-key"

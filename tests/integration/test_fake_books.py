"""What the fake providers can be made to do, and what they remember of it."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support.installation import PROJECT
from tests.support.providers.callback_listener import callback_listener
from tests.support.providers.fake_providers import FakeProviders
from tests.support.waiting import wait_until

ORDER = "/generations"


@pytest.fixture
def leonardo(fake: FakeProviders) -> Iterator[httpx.Client]:
    with fake.client("leonardo") as client:
        yield client


def order(client: httpx.Client, prompt: str) -> str:
    answer = client.post(ORDER, json={"prompt": prompt, "num_images": 1}).raise_for_status()
    job_id: str = answer.json()["sdGenerationJob"]["generationId"]
    return job_id


def look(client: httpx.Client, job_id: str) -> Any:
    return client.get(f"/generations/{job_id}").raise_for_status().json()["generations_by_pk"]


def file_of(client: httpx.Client, prompt: str) -> str:
    """The address of the only image of a job that has ended."""
    job_id = order(client, prompt)
    done = wait_until("complete", lambda: (job := look(client, job_id))["status"] == "COMPLETE" and job)
    url: str = done["generated_images"][0]["url"]
    return url


@pytest.mark.parametrize("word", ["drop-before", "drop-after"])
def test_a_dropped_connection_leaves_an_order_only_if_it_was_taken(
    fake: FakeProviders, leonardo: httpx.Client, word: str
) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        order(leonardo, f"a lighthouse [[{word}]]")
    books = wait_until("hung up", lambda: (books := fake.books("leonardo"))["calls"] and books)
    assert books["number_of_orders"] == (word == "drop-after")
    assert books["calls"] == {"POST /generations": {"none": 1}}


@pytest.mark.parametrize("word", ["hang", "hang-after", "delay=60"])
def test_an_answer_that_does_not_come_leaves_an_order_only_if_it_was_taken(fake: FakeProviders, word: str) -> None:
    with socket.create_connection(address_of(fake)) as caller:
        caller.sendall(raw("leonardo", ORDER, {"prompt": f"a lighthouse [[{word}]]"}, fake))
        for _ in range(20):  # whoever has answered others so often since then has read it
            fake.books("leonardo")
        wait_until("taken", lambda: fake.books("leonardo")["number_of_orders"] == (word != "hang"))
        caller.settimeout(0.5)
        with pytest.raises(TimeoutError):
            caller.recv(1)
    books = wait_until("hung up", lambda: (books := fake.books("leonardo"))["calls"] and books)
    assert books["calls"] == {"POST /generations": {"none": 1}}
    assert books["number_of_orders"] == (word != "hang")


def test_an_answer_may_be_late_or_unreadable(fake: FakeProviders, leonardo: httpx.Client) -> None:
    answer = leonardo.post(ORDER, json={"prompt": "a lighthouse [[delay=0.3]]"})
    assert answer.elapsed.total_seconds() >= 0.3
    page = leonardo.post(ORDER, json={"prompt": "a lighthouse [[garbage]]"})
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert fake.books("leonardo")["number_of_orders"] == 2


def test_a_word_in_a_prompt_is_heard_as_often_as_it_says(leonardo: httpx.Client) -> None:
    prompt = {"prompt": "a lighthouse [[503 x2]] [[poll:429=1 x1]]"}
    answers = [leonardo.post(ORDER, json=prompt) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [503, 503, 200]
    path = f"/generations/{answers[2].json()['sdGenerationJob']['generationId']}"
    assert [leonardo.get(path).status_code for _ in range(3)] == [429, 200, 200]


def test_a_script_holds_for_the_next_requests_that_match(fake: FakeProviders, leonardo: httpx.Client) -> None:
    fake.script("leonardo", "429=2", match="cat", times=2)
    fake.script("midjourney", "500", times=None)
    prompts = ["a cat", "a dog", "a cat", "a cat"]
    answers = [leonardo.post(ORDER, json={"prompt": prompt}) for prompt in prompts]
    assert [answer.status_code for answer in answers] == [429, 200, 429, 200]
    assert answers[0].headers["retry-after"] == "2"

    fake.script("leonardo", "poll:503", times=None)
    job_id = answers[3].json()["sdGenerationJob"]["generationId"]
    assert {leonardo.get(f"/generations/{job_id}").status_code for _ in range(3)} == {503}
    fake.clear_scripts()
    assert leonardo.get(f"/generations/{job_id}").status_code == 200


def test_a_script_that_makes_no_sense_is_refused(fake: FakeProviders) -> None:
    for body in ({"provider": "leonardo", "behaviour": "dance"}, {"provider": "nobody", "behaviour": "500"}, {}):
        assert fake.http.post("/__control/script", json=body).status_code == 400
    assert fake.http.put("/__control/settings", json={"colour": "blue"}).status_code == 400


def test_a_script_for_an_order_goes_with_the_job(fake: FakeProviders, leonardo: httpx.Client) -> None:
    fake.script("leonardo", "fail", "seconds=0.2")
    job_id = order(leonardo, "a lighthouse")
    wait_until("failed", lambda: look(leonardo, job_id)["status"] == "FAILED")


def test_files_that_are_not_what_was_ordered(leonardo: httpx.Client) -> None:
    with httpx.Client(trust_env=False) as http:
        page = http.get(file_of(leonardo, "a [[mislabelled]]"))
        assert (page.headers["content-type"], page.content[:14]) == ("image/png", b"<!doctype html")
        for word in ("oversize", "oversize-unsaid"):
            large = http.get(file_of(leonardo, f"a [[{word}=300000]]"))
            assert len(large.content) == 300_000
            assert large.content.startswith(b"\x89PNG")
            assert ("content-length" in large.headers) == (word == "oversize")
        elsewhere = http.get(file_of(leonardo, "a [[redirect=http://169.254.169.254/latest]]"))
        assert (elsewhere.status_code, elsewhere.headers["location"]) == (302, "http://169.254.169.254/latest")
        assert http.get(file_of(leonardo, "a [[file:404]]")).status_code == 404
        with pytest.raises(httpx.RemoteProtocolError):
            http.get(file_of(leonardo, "a [[cut-file]]"))


def test_a_file_is_there_when_its_job_is_complete(fake: FakeProviders, leonardo: httpx.Client) -> None:
    job_id = order(leonardo, "a lighthouse [[pending=1]]")
    assert fake.http.get(f"/files/{job_id}_0.png").status_code == 404
    look(leonardo, job_id)
    look(leonardo, job_id)
    assert fake.http.get(f"/files/{job_id}_0.png").status_code == 200
    assert fake.http.get("/files/anything").status_code == 404


def test_jobs_count_from_order_to_end_and_the_most_at_once_is_kept(fake: FakeProviders, leonardo: httpx.Client) -> None:
    job_ids = [order(leonardo, f"lighthouse {number} [[seconds=60]]") for number in range(3)]
    leonardo.delete(f"/generations/{job_ids[0]}")
    order(leonardo, "the last [[seconds=0]]")
    books = fake.books("leonardo")
    assert (books["number_of_orders"], books["running"], books["most_running"]) == (4, 2, 3)
    assert [each["state"] for each in books["orders"]] == ["cancelled", "running", "running", "complete"]
    assert books["orders"][0]["ends_at"] <= books["orders"][3]["at"], "a cancelled job has ended then, not by the clock"
    assert fake.books("midjourney")["most_running"] == 0


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_books_scripts_and_jobs_outlive_the_process(fake: FakeProviders, leonardo: httpx.Client, end: str) -> None:
    before = len(fake.log())
    fake.script("leonardo", "429", match="cat")
    long = order(leonardo, "long [[seconds=600]]")
    short = order(leonardo, "short [[seconds=2]]")
    chat = {"messages": [{"role": "user", "content": "Hello there. [[pace=30]]"}], "stream": True}
    with callback_listener() as listener, fake.client("openrouter") as openrouter:
        with fake.client("midjourney") as midapi:
            body = {"prompt": "called back [[seconds=0.5]]", "callBackUrl": f"{listener.url}/late"}
            midapi.post("/api/v1/mj/generate", json=body).raise_for_status()
        with openrouter.stream("POST", "/chat/completions", json=chat):
            getattr(fake, end)()
        assert "ERROR" not in fake.log()[before:]
        fake.start()
        wait_until("the callback of an order from before", lambda: listener.heard)
    wait_until("the short job has ended", lambda: fake.books("leonardo")["running"] == 1)
    books = fake.books("leonardo")
    assert [(each["job_id"], each["state"]) for each in books["orders"]] == [(long, "running"), (short, "complete")]
    assert (books["running"], books["most_running"]) == (1, 2)
    (left,) = fake.books("openrouter")["orders"]
    assert (left["state"], left["ends_at"] is None) == ("left", False)
    with fake.client("leonardo") as again:
        assert (look(again, short)["status"], look(again, long)["status"]) == ("COMPLETE", "PENDING")
        assert again.post(ORDER, json={"prompt": "a cat"}).status_code == 429


def test_who_has_hung_up_does_not_count_beside_the_next(fake: FakeProviders) -> None:
    """A caller may free its place and another take it in less time than the server takes to notice."""
    first, second = (socket.create_connection(address_of(fake)) for _ in range(2))
    with first, second:
        first.sendall(raw_chat("first", fake))
        wait_until("one stream", lambda: fake.books("openrouter")["open_streams"] == 1)
        os.kill(fake.pid, signal.SIGSTOP)
        first.close()
        second.sendall(raw_chat("second", fake))
        os.kill(fake.pid, signal.SIGCONT)
        wait_until("the second", lambda: fake.books("openrouter")["number_of_orders"] == 2)
        assert fake.books("openrouter")["most_running"] == 1


def address_of(fake: FakeProviders) -> tuple[str, int]:
    parts = urlsplit(fake.url)
    assert parts.hostname
    assert parts.port
    return parts.hostname, parts.port


def raw_chat(text: str, fake: FakeProviders) -> bytes:
    chat = {"messages": [{"role": "user", "content": f"{text} [[pace=30]]"}], "stream": True}
    return raw("openrouter", "/chat/completions", chat, fake)


def raw(provider: str, path: str, said: dict[str, Any], fake: FakeProviders) -> bytes:
    """A request as it goes over the wire."""
    body = json.dumps(said)
    head = f"POST /{provider}{path} HTTP/1.1\r\nHost: fake\r\nAuthorization: Bearer {fake.key}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


def test_nothing_is_left_after_a_reset(fake: FakeProviders, leonardo: httpx.Client) -> None:
    fake.script("leonardo", "500", times=None)
    leonardo.post(ORDER, json={"prompt": "a lighthouse"})
    fake.reset()
    assert fake.books("leonardo")["calls"] == {}
    assert leonardo.post(ORDER, json={"prompt": "a lighthouse"}).status_code == 200


def test_without_an_address_it_says_what_is_missing() -> None:
    command = [sys.executable, "-m", "windlass.services.fake_providers"]
    ended = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=90, check=False)
    assert ended.returncode == 2
    assert "WINDLASS_FAKE_PROVIDERS_URL is not set" in ended.stderr

"""Summaries as a user meets them: words as they are written, long texts in parts, and nothing paid for twice."""

import itertools
import re
import signal
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import httpx
import pytest

from tests.acceptance.conftest import a_windlass_apart
from tests.support.installation import Client, Task, Windlass
from tests.support.providers.fake_providers import FakeProviders, fake_providers
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until

NAMES = ("openrouter", "stormy", "impatient", "metered", "wrong", "spent")
MORE = {
    "impatient": "call_timeout_seconds = 10",
    "metered": "rate = {limit = 2, per_seconds = 3}",
    "wrong": 'base_url = "BASE_URL"\napi_key_env = "KEY_OF_NAME"',
    "spent": 'base_url = "BASE_URL"\napi_key_env = "KEY_OF_NAME"',
}
OWN = """
[providers.ours]
actor = "summarize"
adapter = "openai"
base_url = "BASE_URL"
api_key_env = "KEY_OF_ours"
model = "small"

[providers.keyless]
actor = "summarize"
adapter = "openai"
base_url = "BASE_URL"
api_key_env = "KEY_OF_keyless"
model = "small"

[network]
allow_private = ["127.0.0.1"]
"""
PART_CHARACTERS = 600
numbers = itertools.count(1)


def config(fake: FakeProviders) -> str:
    """Whoever runs these tests may have a key of their own, which is not for them."""
    common = 'actor = "summarize"\nadapter = "openrouter"\nmodel = "vendor/small"'
    tables = "".join(f"[providers.{name}]\n{common}\n{MORE.get(name, '').replace('NAME', name)}\n" for name in NAMES)
    return tables.replace("BASE_URL", fake.base_url("openrouter")) + OWN.replace("BASE_URL", fake.base_url("openai"))


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeProviders]:
    with fake_providers(tmp_path_factory.mktemp("fake")) as fake:
        yield fake


@pytest.fixture(scope="module")
def windlass(
    fake: FakeProviders,
    servers: Servers,
    migrated_template: str,
    management: httpx.Client,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Windlass]:
    """One for the whole file: each test looks at its own tasks, and at the orders that name their text. So much fails
    here on purpose that a breaker would open."""
    settings = {
        "WINDLASS_FAKE_PROVIDERS_URL": fake.url,
        "WINDLASS_SUMMARIZE_PART_CHARACTERS": str(PART_CHARACTERS),
        "WINDLASS_BREAKER_FAILURE_RATIO": "1",
        "KEY_OF_wrong": "bad-key",
        "KEY_OF_spent": "no-credit",
        "KEY_OF_ours": "a-key",
    }
    directory = tmp_path_factory.mktemp("summarize")
    with a_windlass_apart(
        servers, migrated_template, management, directory, config=config(fake), actors=("summarize",), **settings
    ) as windlass:
        windlass.start_all()
        yield windlass


@pytest.fixture
def client(windlass: Windlass) -> Client:
    return windlass.client


def a_text(*, sentences: int = 4, words: str = "") -> tuple[str, str]:
    """A text that no other test has, and the name by which its orders are found; the words are for the fake."""
    name = f"lighthouse-{next(numbers)}-"
    lines = [f"The keeper of {name} wrote line {n} of the log." for n in range(1, sentences + 1)]
    return name, " ".join(lines) + (f" {words}" if words else "")


def a_long_text(*, parts: int = 4, words: str = "") -> tuple[str, str]:
    """Three sentences a part, each too long for the fake to say it whole; the words stand in the third part."""
    name = f"lighthouse-{next(numbers)}-"
    rest = "before he lit the lamp, wound up the clockwork and swept the long stairs from the top to the door,"
    lines = [
        f"The keeper of {name} wrote line {n} of the log {rest} as he did on every evening." for n in range(3 * parts)
    ]
    lines[7] += f" {words}" if words else ""
    return name, " ".join(lines)


def summarize(client: Client, text: str, *, provider: str = "openrouter", **fields: Any) -> Task:
    payload: dict[str, Any] = {"content": text}
    payload |= {name: fields.pop(name) for name in ("model", "max_words", "instructions") if name in fields}
    return client.submit(actor="summarize", provider=provider, payload=payload, **fields)


def orders(fake: FakeProviders, name: str) -> list[dict[str, Any]]:
    """What the provider was asked about one text, and took money for."""
    return [order for order in fake.books("openrouter")["orders"] if name in order["prompt"]]


def system_of(order: dict[str, Any]) -> str:
    return str(order["request"]["messages"][0]["content"])


def text_of(order: dict[str, Any]) -> str:
    """What stands between the lines that say where the text begins and ends."""
    first, _, rest = order["prompt"].partition("\n")
    text, _, last = rest.rpartition("\n")
    assert first == last
    return str(text)


def words_in(finished: list[dict[str, Any]]) -> int:
    """For the fake a word is a token, and the words meant for itself are none."""
    whole = " ".join(message["content"] for order in finished for message in order["request"]["messages"])
    return len(re.sub(r"\s*\[\[[^\]]+\]\]", "", whole).split())


def cost_of(usage: dict[str, int]) -> float:
    """At the fake's prices."""
    return usage["prompt_tokens"] * 0.15e-6 + usage["completion_tokens"] * 0.6e-6


def outputs(client: Client, task_id: str, attempt: int | None = None) -> str:
    events = [event for event in client.events(task_id) if event["type"] == "output"]
    return "".join(event["data"]["text"] for event in events if attempt in {None, event["attempt"]})


def errors(client: Client, task_id: str) -> list[str]:
    """The types of what went wrong, attempt by attempt."""
    return [event["data"]["error"]["type"] for event in client.events(task_id) if event["type"] in {"retry", "bury"}]


MENDED = {
    "[[drop-stream x1]]": "NetworkTimeout",
    "[[no-done x1]]": "NetworkTimeout",
    "[[hang-after x1]]": "NetworkTimeout",
    "[[error-in-stream x1]]": "ServiceUnavailable",
    "[[503 x1]]": "ServiceUnavailable",
    "[[empty x1]]": "ServiceUnavailable",
}
"""What the provider does once, and how it is told."""


@pytest.fixture(scope="module", autouse=True)
def troubled(windlass: Windlass) -> dict[str, Task]:
    """Submitted before everything else: they wait for their second attempts while other tests run."""
    return {
        **{words: summarize(windlass.client, a_text(words=words)[1], provider="impatient") for words in MENDED},
        "in parts": summarize(windlass.client, a_long_text(words="[[drop-stream x1]]")[1]),
    }


# What a user sees


def test_words_come_as_they_are_written_and_the_result_says_what_they_cost(client: Client, fake: FakeProviders) -> None:
    name, text = a_text(words="[[pace=0.3]]")
    task = summarize(client, text, model="vendor/large", max_words=40, instructions="Name the keeper first.")
    heard: list[str] = []
    with client.stream(task["task_id"]) as events:
        for _, event, data in events:
            if event == "output":
                heard.append(data["text"])
                if len(heard) == 1:
                    assert orders(fake, name)[0]["state"] == "running", "the first words come while it is written"
            if event == "complete":
                result = data["result"]
    assert len(heard) >= 3
    assert "".join(heard) == result["summary"]
    assert result["summary"].startswith(f"The keeper of {name} wrote line 1 of")
    (order,) = orders(fake, name)
    assert order["request"]["model"] == result["model"] == "vendor/large"
    system, user = order["request"]["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert "Write at most 40 words." in system["content"]
    assert len(result["summary"].split()) <= 40
    assert result["summary"].endswith("of the log. As you wished: Name the keeper first.")
    assert "Name the keeper first." in system["content"]
    assert text in user["content"]
    assert name not in system["content"]
    assert result["usage"] == {"prompt_tokens": words_in([order]), "completion_tokens": len(result["summary"].split())}
    assert result["cost"] == pytest.approx(cost_of(result["usage"]))
    assert client.get(task["task_id"])["usage"] == {"cost_usd": pytest.approx(result["cost"]), **result["usage"]}
    assert set(result) == {"summary", "model", "usage", "cost"}


def test_the_configured_model_writes_where_none_is_named(client: Client) -> None:
    task = summarize(client, a_text()[1], wait=40)
    assert (task["status"], task["result"]["model"]) == ("completed", "vendor/small")
    assert task["progress"]["message"] == "Completed"


def test_a_summary_that_reached_the_models_limit_says_so(client: Client) -> None:
    task = summarize(client, a_text(words="[[finish=length]]")[1], wait=40)
    assert (task["status"], task["result"]["cut_short"]) == ("completed", True)
    assert task["result"]["summary"]


def test_a_long_text_is_summarised_in_parts_and_then_as_a_whole(client: Client, fake: FakeProviders) -> None:
    name, text = a_long_text(parts=6)
    task = client.finished(summarize(client, text)["task_id"])
    assert task["status"] == "completed"
    asked = orders(fake, name)
    first_round = [text_of(order) for order in asked if "of 6 of a longer text" in system_of(order)]
    assert "".join(first_round) == text, "each part once, in order, and nothing left out"
    assert all(len(text_of(order)) <= PART_CHARACTERS and text_of(order).rstrip().endswith(".") for order in asked)
    second_round = [order for order in asked[6:-1] if "This is part" in system_of(order)]
    assert (len(second_round), len(asked)) == (2, 9), "the six summaries are too long for one call as well"
    assert "row of summaries" in system_of(asked[-1])
    assert outputs(client, task["task_id"]) == task["result"]["summary"], "only the whole is streamed"
    assert task["result"]["usage"]["prompt_tokens"] == words_in(asked), "of all calls together"
    assert task["result"]["cost"] == pytest.approx(cost_of(task["result"]["usage"]))


def test_a_model_that_does_not_come_to_the_point_is_not_asked_for_ever(client: Client, fake: FakeProviders) -> None:
    """The fake says whole sentences of at most so many words, and each part is one of few, but long ones."""
    name = f"lighthouse-{next(numbers)}-"
    sentence = f"{name} {' '.join(letter * 70 for letter in 'abcdefg')}."
    task = summarize(client, " ".join([sentence] * 3), wait=40)
    assert task["status"] == "completed"
    assert len(orders(fake, name)) == 4, "three parts, and then the whole, however long"


def test_progress_says_which_part_is_read(client: Client, fake: FakeProviders) -> None:
    name, text = a_long_text()
    fake.script("openrouter", "pace=0.15", match=name, times=None)
    task = client.finished(summarize(client, text)["task_id"])
    said = [event["data"]["progress"] for event in client.events(task["task_id"]) if event["type"] == "progress"]
    parts = [f"Summarising part {number} of 4" for number in (1, 2, 3, 4)]
    assert [progress["message"] for progress in said] == [*parts, "Writing the summary of the whole"]
    assert [progress["percent"] for progress in said] == [0, 20, 40, 60, 80]


def test_the_calls_of_one_summary_keep_to_the_providers_rate(client: Client, fake: FakeProviders) -> None:
    name, text = a_long_text()
    task = client.finished(summarize(client, text, provider="metered")["task_id"])
    assert task["status"] == "completed"
    times = [order["at"] for order in orders(fake, name)]
    assert len(times) >= 5
    # A call may come late, and then the next but one comes after it sooner; but it never comes early.
    assert all(third - first > 1 for first, third in zip(times, times[2:], strict=False)), "two in three seconds"
    begun = datetime.fromisoformat(task["started_at"]).timestamp()
    assert all(at - begun > 0.85 * 3 * (number // 2) for number, at in enumerate(times)), "from the beginning on"


# What goes wrong


def test_what_can_be_mended_is_tried_again(client: Client, fake: FakeProviders, troubled: dict[str, Task]) -> None:
    for words, error in MENDED.items():
        task_id = troubled[words]["task_id"]
        done = client.finished(task_id)
        assert (done["status"], done["attempt"], done["retry_count"]) == ("completed", 2, 1), words
        assert errors(client, task_id) == [error], words
        assert outputs(client, task_id, attempt=2) == done["result"]["summary"], words
    cut_off = client.get(troubled["[[drop-stream x1]]"]["task_id"])
    before = outputs(client, cut_off["task_id"], attempt=1)
    assert before, "what came before the break was shown"
    assert cut_off["result"]["summary"].startswith(before)
    paid_twice = client.get(troubled["[[empty x1]]"]["task_id"])
    (_, second) = orders(fake, paid_twice["payload"]["content"].split()[3])
    assert paid_twice["usage"] == {"cost_usd": paid_twice["result"]["cost"], **paid_twice["result"]["usage"]}
    assert paid_twice["result"]["usage"]["prompt_tokens"] > 1.9 * words_in([second]), "the empty answer cost as much"


def test_after_a_failure_no_part_is_paid_for_twice(
    client: Client, fake: FakeProviders, troubled: dict[str, Task]
) -> None:
    task = client.finished(troubled["in parts"]["task_id"])
    assert (task["status"], errors(client, task["task_id"])) == ("completed", ["NetworkTimeout"])
    name = task["payload"]["content"].split()[3]
    only_the_third_was_repeated(fake, name)
    finished = [order for order in orders(fake, name) if order["state"] == "complete"]
    assert task["result"]["usage"]["prompt_tokens"] == words_in(finished), "those of the first attempt are counted"


def only_the_third_was_repeated(fake: FakeProviders, name: str) -> None:
    times = Counter(text_of(order) for order in orders(fake, name) if "This is part" in system_of(order))
    assert list(times.values()) == [1, 1, 2, 1], "the one that broke off, and no other"


def test_a_429_pauses_the_provider_and_costs_no_retry(client: Client) -> None:
    first = summarize(client, a_text(words="[[429=10 x1]]")[1], provider="stormy")
    client.wait_until(first["task_id"], "retrying")
    second = summarize(client, a_text()[1], provider="stormy")
    assert client.http.get(f"/api/v1/tasks/{second['task_id']}/why").json()["reason"] == "rate-limited-until"
    for task in (first, second):
        assert client.finished(task["task_id"])["status"] == "completed"
    assert errors(client, first["task_id"]) == ["RateLimited"]
    assert client.get(first["task_id"])["retry_count"] == 0


@pytest.mark.parametrize(
    ("provider", "words", "error"),
    [
        ("wrong", "", "Unauthorized"),
        ("spent", "", "QuotaExhausted"),
        ("openrouter", "This is to be moderated.", "ContentRejected"),
        ("openrouter", "[[finish=content_filter]]", "ContentRejected"),
        ("openrouter", "[[400]]", "InvalidInput"),
        ("openrouter", "[[error-in-stream=402]]", "QuotaExhausted"),
    ],
)
def test_what_cannot_be_mended_is_buried_at_once(client: Client, provider: str, words: str, error: str) -> None:
    task = summarize(client, a_text(words=words)[1], provider=provider, wait=40)
    assert (task["status"], task["attempt"]) == ("dead", 1)
    assert (task["error"]["type"], task["error"]["kind"]) == (error, "permanent")
    assert provider in task["error"]["message"]


# Stopping it


def streaming(client: Client, fake: FakeProviders, name: str, task: Task) -> None:
    """Waits until its first words have come."""
    wait_until("the first words", lambda: outputs(client, task["task_id"]))
    assert [order["state"] for order in orders(fake, name)] == ["running"]


def test_a_cancel_in_the_middle_hangs_up(client: Client, fake: FakeProviders) -> None:
    name, text = a_text(words="[[pace=60]]")
    task = summarize(client, text)
    streaming(client, fake, name, task)
    assert client.cancel(task["task_id"]).status_code == 202
    client.wait_until(task["task_id"], "cancelled")
    wait_until("hung up", lambda: fake.books("openrouter")["open_streams"] == 0)
    assert [order["state"] for order in orders(fake, name)] == ["left"], "it is not written to its end, nor again"


def test_a_summary_that_takes_too_long_is_timed_out_and_hung_up(client: Client, fake: FakeProviders) -> None:
    task = summarize(client, a_text(words="[[pace=60]]")[1], timeout_seconds=8, max_retries=0)
    done = client.finished(task["task_id"])
    assert (done["status"], done["error"]["type"]) == ("dead", "TimedOut")
    wait_until("hung up", lambda: fake.books("openrouter")["open_streams"] == 0)
    assert outputs(client, task["task_id"]).startswith("The keeper of"), "what had come is kept"


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_a_worker_that_ends_in_the_middle_pays_for_no_part_twice(
    windlass: Windlass, client: Client, fake: FakeProviders, how: str
) -> None:
    name, text = a_long_text(words="[[pace=5 x1]]")
    task = summarize(client, text)
    # A report brings both the progress and the checkpoint: two parts are paid for, and written down.
    wait_until("part 3", lambda: "part 3 of" in client.get(task["task_id"])["progress"]["message"])
    wait_until("it is asked for", lambda: len(orders(fake, name)) == 3)
    if how == "stopped":
        windlass.actors.send_signal(signal.SIGTERM)
        windlass.actors.wait(60)
        assert client.get(task["task_id"])["status"] == "queued"
        windlass.actors = windlass.start("actors")
    else:
        (worker,) = client.workers()
        windlass.kill(worker["pid"])
    done = client.finished(task["task_id"])
    assert (done["status"], done["attempt"]) == ("completed", 2)
    assert client.story(task["task_id"]).count("interrupt" if how == "stopped" else "stall") == 1
    only_the_third_was_repeated(fake, name)
    assert outputs(client, task["task_id"]) == done["result"]["summary"]


def test_an_own_provider_in_openai_s_shape_writes_summaries(client: Client, fake: FakeProviders) -> None:
    name, text = a_text()
    task = client.finished(summarize(client, text, provider="ours")["task_id"])
    assert task["status"] == "completed", task["error"]
    (order,) = [order for order in fake.books("openai")["orders"] if name in order["prompt"]]
    assert order["request"]["stream_options"] == {"include_usage": True}
    assert task["result"]["model"] == "small"
    assert task["usage"] == {
        "cost_usd": None,
        "prompt_tokens": words_in([order]),
        "completion_tokens": len(task["result"]["summary"].split()),
    }
    assert name in "".join(event["data"].get("text", "") for event in client.events(task["task_id"]))


def test_an_own_provider_without_its_key_says_which_and_nobody_plays_it(client: Client, fake: FakeProviders) -> None:
    name, text = a_text()
    task = client.finished(summarize(client, text, provider="keyless")["task_id"])
    assert (task["status"], task["error"]["type"]) == ("dead", "Unauthorized")
    assert task["error"]["message"] == "keyless cannot be spoken to: set KEY_OF_keyless"
    for provider in ("openai", "openrouter"):
        assert not [order for order in fake.books(provider)["orders"] if name in order["prompt"]]

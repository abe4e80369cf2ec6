"""Memory as a user meets it: what agents did is found again, by its owner alone; models change under it; figures."""

import asyncio
import csv
import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.acceptance.conftest import a_windlass_apart
from tests.support.agents_at_work import COMMAND
from tests.support.an_api import new_key
from tests.support.installation import Client, Windlass
from tests.support.providers.fake_providers import FakeProviders, fake_providers
from tests.support.servers.private_servers import Servers, open_directory
from tests.support.waiting import wait_until
from windlass.services.fake_providers.openai import EMBEDDING_DIMENSIONS, EMBEDDING_MODEL
from windlass.shared import db
from windlass.shared.settings import Settings
from windlass.shared.store.operating import statistics

ANALYST = """
import json, sys
order = json.load(sys.stdin)
print(json.dumps({"usage": {"cost_usd": 0.25, "prompt_tokens": 9}}))
print(json.dumps({"answer": order["prompt"], "memories": order.get("memories"), "stats": order.get("stats")}))
"""
CONFIG = """
[providers.vectors]
actor = "embed"
adapter = "openai"
base_url = "{url}"
api_key_env = "VECTORS_KEY"

[agents.worker]
command = {command}
sandbox = "off"

[agents.analyst]
command = {command}
sandbox = "off"
memory = 3
stats = 7

[network]
allow_private = ["127.0.0.1"]
"""


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    with open_directory() as directory:
        yield directory


@pytest.fixture(scope="module")
def fake(directory: Path) -> Iterator[FakeProviders]:
    with fake_providers(directory) as fake:
        yield fake


@pytest.fixture(scope="module")
def windlass(
    servers: Servers, migrated_template: str, management: httpx.Client, directory: Path, fake: FakeProviders
) -> Iterator[Windlass]:
    program = directory / "analyst.py"
    program.write_text(ANALYST)
    config = CONFIG.format(url=fake.base_url("openai"), command=[*COMMAND[:-1], str(program)])
    settings = {
        "WINDLASS_DATA_DIR": str(directory / "data"),
        "WINDLASS_MEMORY_GATHER_SECONDS": "0.2",
        "VECTORS_KEY": "a-key-for-vectors",
    }
    with a_windlass_apart(
        servers, migrated_template, management, directory, config=config, actors=("agent", "embed"), **settings
    ) as windlass:
        windlass.start_all()
        yield windlass


@pytest.fixture(scope="module")
def ann(windlass: Windlass) -> Client:
    return windlass.client.with_key(new_key(windlass.client, "user", "ann"))


@pytest.fixture(scope="module")
def bob(windlass: Windlass) -> Client:
    return windlass.client.with_key(new_key(windlass.client, "user", "bob"))


def work(client: Client, prompt: str, agent: str = "worker") -> Any:
    task = client.submit(actor="agent", payload={"subagent_type": agent, "prompt": prompt})
    return client.finished(task["task_id"])


def search(client: Client, question: str, **params: Any) -> Any:
    answer = client.http.get("/api/v1/memory/search", params={"q": question, **params})
    return answer.raise_for_status().json()


def events(client: Client) -> list[Any]:
    found: list[Any] = client.http.get("/api/v1/agent-events").raise_for_status().json()["items"]
    return found


def models(client: Client) -> dict[str, Any]:
    listed = client.http.get("/api/v1/embedding-models").raise_for_status().json()["items"]
    return {each["name"]: each for each in listed}


def test_what_agents_did_is_found_again_by_who_may_see_it(windlass: Windlass, ann: Client, bob: Client) -> None:
    work(ann, "Count the lighthouses of Norway")
    work(ann, "Compare the tides of the Atlantic")
    work(bob, "Count the lighthouses of the bobbing isles")
    wait_until("they have vectors", lambda: search(ann, "tides")["coverage"] == 1.0, seconds=60)
    wait_until("bob's, too", lambda: search(bob, "tides")["coverage"] == 1.0, seconds=60)
    found = search(ann, "how many lighthouses are there in Norway?")
    assert (found["model"]["name"], found["exact"], found["degraded"]) == ("hash-256", True, False)
    first = found["items"][0]
    assert (first["event"]["title"], first["matched"]) == ("Count the lighthouses of Norway", ["text", "vector"])
    assert first["event"]["data"]["usage"]["cost_usd"] == 0.25
    for client, own in ((ann, {"ann"}), (bob, {"bob"}), (windlass.client, {"ann", "bob"})):
        assert {each["event"]["user_id"] for each in search(client, "lighthouses")["items"]} == own
        assert {each["user_id"] for each in events(client)} == own
    foreign = events(bob)[0]["event_id"]
    assert ann.http.get(f"/api/v1/agent-events/{foreign}").status_code == 404
    assert ann.http.delete(f"/api/v1/agent-events/{foreign}").status_code == 404
    assert bob.http.get(f"/api/v1/agent-events/{foreign}").json()["title"].endswith("isles")


def test_an_agent_is_told_what_its_user_s_agents_did_before(windlass: Windlass, ann: Client) -> None:
    keep_figures(windlass)
    told = work(ann, "Which lighthouses did we count?", agent="analyst")
    memories = told["result"]["memories"]
    assert 1 <= len(memories) <= 3
    assert memories[0]["title"] == "Count the lighthouses of Norway"
    assert not [each for each in memories if "isles" in each["text"]], "those are bob's"
    assert {each["subagent_type"] for each in told["result"]["stats"]} == {"worker"}
    history = ann.http.get(f"/api/v1/tasks/{told['task_id']}/events").json()["items"]
    (recalled,) = [each["data"] for each in history if each["type"] == "recall"]
    assert recalled["memories"] == [each["event_id"] for each in memories]
    assert (recalled["model"], recalled["degraded"], recalled["stats_days"]) == ("hash-256", False, 7)
    assert told["usage_by_attempt"] == [{"attempt": 1, "cost_usd": 0.25, "prompt_tokens": 9, "completion_tokens": None}]
    assert work(ann, "a plain one")["result"]["memories"] is None


def test_another_model_takes_over_and_one_refused_text_blocks_no_other(
    windlass: Windlass, ann: Client, fake: FakeProviders
) -> None:
    admin = windlass.client
    work(ann, "this text will be moderated away")
    wait_until("it was gathered", lambda: models(admin)["hash-256"]["vectors"] == len(events(admin)), seconds=60)
    there = len(events(admin))
    wanted = {"name": EMBEDDING_MODEL, "provider": "vectors", "dimensions": EMBEDDING_DIMENSIONS}
    created = admin.http.post("/api/v1/embedding-models", json=wanted)
    assert created.status_code == 201, created.text
    assert admin.http.post("/api/v1/embedding-models", json=wanted).json()["code"] == "model-exists"
    assert ann.http.post("/api/v1/embedding-models", json=wanted).status_code == 403
    wait_until("all but one", lambda: models(admin)[EMBEDDING_MODEL]["vectors"] == there - 1, seconds=90)
    wait_until("and that one is listed", lambda: len(failed_jobs(admin)) == 1, seconds=60)
    (job,) = failed_jobs(admin)
    assert (job["events"], job["error"]["type"]) == (1, "ContentRejected")
    again = admin.http.post(f"/api/v1/embedding-jobs/{job['job_id']}/retry")
    assert (again.status_code, again.json()["state"]) == (202, "waiting")

    model_id = created.json()["model_id"]
    assert search(ann, "lighthouses")["model"]["name"] == "hash-256"
    admin.http.post(f"/api/v1/embedding-models/{model_id}/activate").raise_for_status()
    wait_until("its vector is there", lambda: not search(ann, "lighthouse keepers")["degraded"], seconds=60)
    found = search(ann, "lighthouse keepers")
    assert found["model"] == {"model_id": model_id, "name": EMBEDDING_MODEL}
    assert found["coverage"] < 1
    assert "vector" in found["items"][0]["matched"]
    refused = admin.http.delete(f"/api/v1/embedding-models/{model_id}")
    assert (refused.status_code, refused.json()["code"]) == (409, "model-active")

    fake.script("openai", "503", times=None)
    try:
        alone = search(ann, "something about lighthouses that nobody has asked before")
    finally:
        fake.clear_scripts()
    assert (alone["degraded"], alone["coverage"]) == (True, None)
    assert {tuple(each["matched"]) for each in alone["items"]} == {("text",)}
    admin.http.post(f"/api/v1/embedding-models/{models(admin)['hash-256']['model_id']}/activate").raise_for_status()
    assert admin.http.delete(f"/api/v1/embedding-models/{model_id}").status_code == 204


def failed_jobs(client: Client) -> list[Any]:
    found: list[Any] = client.http.get("/api/v1/embedding-jobs", params={"state": "failed"}).json()["items"]
    return found


def test_a_forgotten_event_is_not_found_any_more(ann: Client) -> None:
    (event,) = [each for each in events(ann) if "tides" in each["title"]]
    assert ann.http.delete(f"/api/v1/agent-events/{event['event_id']}").status_code == 204
    assert ann.http.get(f"/api/v1/agent-events/{event['event_id']}").status_code == 404
    assert event["event_id"] not in {each["event"]["event_id"] for each in search(ann, "tides")["items"]}
    assert ann.get(event["task_id"])["status"] == "completed"


def test_figures_by_user_as_json_and_csv(windlass: Windlass, ann: Client) -> None:
    keep_figures(windlass)
    asked = {"group_by": "user_id,subagent_type", "days": "2"}
    own = ann.http.get("/api/v1/stats", params=asked).raise_for_status().json()["items"]
    assert {each["user_id"] for each in own} == {"ann"}
    agents = [each for each in own if each["subagent_type"] is not None]
    assert {each["subagent_type"] for each in agents} == {"worker", "analyst"}, "the others made vectors of questions"
    assert all(each["cost_usd"] == pytest.approx(0.25 * each["completed"]) for each in agents)
    everybody = windlass.client.http.get("/api/v1/stats", params=asked).json()["items"]
    assert {"ann", "bob"} <= {each["user_id"] for each in everybody}
    table = ann.http.get("/api/v1/stats", params=asked, headers={"Accept": "text/csv"})
    assert table.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(table.text)))
    assert [row["subagent_type"] for row in rows] == [each["subagent_type"] or "" for each in own]
    assert [int(row["completed"]) for row in rows] == [each["completed"] for each in own]
    wrong = ann.http.get("/api/v1/stats", params={"group_by": "colour"})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/group_by")


def keep_figures(windlass: Windlass) -> None:
    """As the janitor does every minute; of yesterday, too, for midnight may have passed meanwhile."""

    async def write() -> None:
        pool = await db.open_pool(Settings(database_url=windlass.environment["WINDLASS_DATABASE_URL"]), "test", most=1)
        try:
            today = datetime.now(UTC).date()
            for day in (today - timedelta(days=1), today):
                await statistics.keep_figures(pool, day)
        finally:
            await pool.close()

    asyncio.run(write())

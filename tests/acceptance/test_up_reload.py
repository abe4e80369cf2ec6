"""`windlass up --actors our_actors.py --reload`: a saved file is at work moments later, and nobody pays for it."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.servers.private_servers import new_directory
from tests.support.up import WindlassUp
from tests.support.waiting import wait_until

OLD = """
from windlass import Context, actor


@actor
def greet(*, context: Context) -> str:
    while True:
        context.sleep(0.05)
"""
NEW = """
from words import WORD
from windlass import actor


@actor
def greet(name: str = "you") -> str:
    return f"{WORD}, {name}"
"""
READY_SECONDS = 90


@pytest.fixture
def up(database_url: str, amqp_url: str) -> Iterator[WindlassUp]:
    directory = new_directory()
    (directory / "own").mkdir()
    (directory / "own/our_actors.py").write_text(OLD)
    up = WindlassUp(directory / "data").with_arguments("--actors", str(directory / "own/our_actors.py"), "--reload")
    up.with_settings(WINDLASS_DATABASE_URL=database_url, WINDLASS_AMQP_URL=amqp_url, WINDLASS_DRAIN_SECONDS="600")
    up.start()
    yield up
    up.make_sure_that_it_has_stopped()
    print(up.log)  # pytest shows it when the test failed
    shutil.rmtree(directory)


def answer(client: httpx.Client, path: str, **parameters: Any) -> Any:
    return client.get(f"/api/v1/{path}", params=parameters).raise_for_status().json()


def save(file: Path, content: str) -> None:
    """Whole at once, as an editor does it: nobody reads half of it."""
    draft = file.with_suffix(".draft")
    draft.write_text(content)
    draft.replace(file)


def says(up: WindlassUp, words: str) -> list[str]:
    return [line for line in up.log.splitlines() if words in line]


def test_running_tasks_are_handed_back_and_run_by_the_new_code(up: WindlassUp) -> None:
    own = up.directory.parent / "own"
    with up.client() as client:
        task_id = client.post("/api/v1/tasks/greet", json={}).raise_for_status().json()["task_id"]
        wait_until("running", lambda: answer(client, f"tasks/{task_id}")["status"] == "running")
        wait_until("it watches", lambda: says(up, "watching the 1 Python file below"))
        before, version = up.run_file(), answer(client, "actors/greet")["version"]

        # A file that cannot be imported: the old code and what is known of it stay.
        save(own / "our_actors.py", NEW)
        (said,) = wait_until("it complains", lambda: says(up, "the old code stays"), seconds=READY_SECONDS)
        assert "our_actors.py changed, and the old code stays until the next save: WINDLASS_ACTORS: " in said
        assert "needs words, which is not installed here" in said
        task = answer(client, f"tasks/{task_id}")
        assert (task["status"], task["attempt"]) == ("running", 1)
        assert answer(client, "actors/greet")["version"] == version

        # The next save mends it.
        save(own / "words.py", 'WORD = "Hello"\n')
        wait_until("it is ready again", lambda: says(up, "the actors are ready again"), seconds=READY_SECONDS)
        (said,) = says(up, "words.py changed: registered anew")
        task = answer(client, f"tasks/{task_id}", wait=50)
        assert (task["status"], task["result"], task["attempt"]) == ("completed", "Hello, you", 2), task["error"]
        assert task["retry_count"] == 0
        story = [event["type"] for event in answer(client, f"tasks/{task_id}/events")["items"]]
        assert [each for each in story if each in {"claim", "interrupt", "stall", "retry", "complete"}] == [
            "claim", "interrupt", "claim", "complete",
        ]  # fmt: skip
        assert answer(client, "actors/greet")["version"] != version
        later = client.post("/api/v1/tasks/greet", json={"name": "Ann"}, params={"wait": 50}).json()
        assert later["result"] == "Hello, Ann"

    after = up.run_file()
    (actors, agents), (new_actors, new_agents) = before["actors"], after["actors"]
    assert actors["pid"] != new_actors["pid"]
    assert (agents["pid"], before["api"]["pid"]) == (new_agents["pid"], after["api"]["pid"])
    assert up.stop() == 0

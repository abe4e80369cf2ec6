"""Concurrency keys in a whole installation: never more of one key at once, also when a worker is killed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import let_the_next_attempt_be_short
from tests.support.engine.keyed import MOST_AT_ONCE
from tests.support.installation import Windlass
from tests.support.servers.databases import ask
from tests.support.waiting import wait_until

EACH = 4
CONFIG = '[actors.probe]\nconcurrency = {{key = "/result/account", limit = {limit}}}\n'


@pytest.fixture
def windlass(database_url: str, amqp_url: str, tmp_path: Path) -> Iterator[Windlass]:
    config = tmp_path / "windlass.toml"
    config.write_text(CONFIG.format(limit=1))
    windlass = Windlass(database_url, amqp_url, tmp_path, WINDLASS_CONFIG=str(config), WINDLASS_QUEUES="probe.probe")
    try:
        windlass.start_all()
        windlass.start("actors")
        windlass.wait_until_healthy()
        wait_until("both workers", lambda: len(windlass.client.workers()) == 2)
        yield windlass
    finally:
        windlass.stop()
        print(windlass.log())


def submit(windlass: Windlass, accounts: str, *, seconds: float, first: float | None = None) -> list[str]:
    """Those of one account after the other: the first stand in front of all, and the very first may take longer."""
    wanted = [{"payload": {"seconds": seconds, "result": {"account": each}}} for each in accounts for _ in range(EACH)]
    if first is not None:
        wanted[0] = {"payload": {**wanted[0]["payload"], "seconds": first}}
    return windlass.client.submit_many(wanted)


def most_at_once(windlass: Windlass) -> dict[str, int]:
    rows = ask(windlass.environment["WINDLASS_DATABASE_URL"], MOST_AT_ONCE)
    return {row["concurrency_key"]: row["most"] for row in rows}


def is_parked(windlass: Windlass, task_id: str) -> dict[str, Any] | None:
    why = windlass.client.why(task_id)
    return why if why["reason"] == "key-limit" and why["details"].get("held") == ["key"] else None


def first_claim(windlass: Windlass, task_id: str) -> str:
    return str(next(event["at"] for event in windlass.client.events(task_id) if event["type"] == "claim"))


def test_no_more_of_a_key_run_at_once_than_may(windlass: Windlass, tmp_path: Path) -> None:
    client = windlass.client
    ids = submit(windlass, "abc", seconds=0.4, first=600)
    assert client.get(ids[0])["concurrency_key"] == "a"
    holder = client.wait_until(ids[0], "running")["worker_id"]
    let_the_next_attempt_be_short(windlass, ids[0])
    why = wait_until("it is parked", lambda: is_parked(windlass, ids[EACH - 1]))
    assert (why["details"]["key"], why["details"]["limit"], why["details"]["running"] <= 1) == ("a", 1, True)
    for worker in client.workers():
        if worker["worker_id"] == holder:
            windlass.kill(worker["pid"])
    for task_id in ids:
        assert client.finished(task_id)["status"] == "completed"
        assert client.story(task_id).count("complete") == 1
        assert client.story(task_id).count("hold") <= 2 * client.story(task_id).count("claim"), "again and again"
    assert most_at_once(windlass) == dict.fromkeys("abc", 1)
    for first in (EACH, 2 * EACH):
        assert first_claim(windlass, ids[first]) < first_claim(windlass, ids[1]), "a full key keeps nobody else waiting"

    (tmp_path / "windlass.toml").write_text(CONFIG.format(limit=2))
    windlass.kill_api()
    windlass.start_api_again()
    ids = submit(windlass, "def", seconds=1)
    for task_id in ids:
        assert client.finished(task_id)["status"] == "completed"
    assert {key: most for key, most in most_at_once(windlass).items() if key in "def"} == dict.fromkeys("def", 2)

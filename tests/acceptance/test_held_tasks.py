"""Held tasks, as a client sees them."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from tests.support.an_api import an_api
from tests.support.engine.store_from_threads import ask
from tests.support.installation import Client, Windlass
from tests.support.servers.private_servers import Servers
from windlass.shared.holds import Hold
from windlass.shared.store import tasks


@pytest.fixture(scope="module")
def windlass(servers: Servers, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Windlass]:
    with an_api(servers, migrated_template, tmp_path_factory.mktemp("held")) as windlass:
        yield windlass


@pytest.fixture
def client(windlass: Windlass) -> Client:
    return windlass.client


def submit(client: Client) -> dict[str, object]:
    answer = client.http.post("/api/v1/tasks", json={"actor": "probe", "payload": {}})
    assert answer.status_code == 201, answer.text
    task: dict[str, object] = answer.json()
    return task


def test_a_held_task_shows_its_reasons_and_its_own_time(windlass: Windlass, client: Client) -> None:
    task = submit(client)
    assert (task["held"], task["concurrency_key"]) == ([], None)
    task_id = UUID(str(task["task_id"]))
    ask(windlass.environment["WINDLASS_DATABASE_URL"], lambda engine: tasks.hold(engine.pool, [task_id], Hold.KEY))
    held = client.http.get(f"/api/v1/tasks/{task_id}").json()
    assert (held["held"], held["status"], held["available_at"]) == (["key"], "queued", task["available_at"])
    for full in ("false", "true"):
        (listed,) = client.http.get("/api/v1/tasks", params={"full": full}).json()["items"]
        assert (listed["held"], listed["available_at"]) == (["key"], task["available_at"])
        assert "due_at" not in listed
    assert client.http.get(f"/api/v1/tasks/{task_id}/why").json()["reason"] == "key-limit"
    events = client.http.get(f"/api/v1/tasks/{task_id}/events", params={"type": "hold"}).json()["items"]
    assert [event["data"] for event in events] == [{"status": "queued", "reason": "key", "held": ["key"]}]
    assert client.http.post(f"/api/v1/tasks/{task_id}/cancel").json()["held"] == []

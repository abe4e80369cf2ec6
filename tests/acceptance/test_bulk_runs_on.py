"""A bulk job outlives the api that accepted it and the janitor that began it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg

from tests.support.installation import Client, Windlass
from tests.support.servers.databases import ask
from tests.support.waiting import wait_until
from windlass.services.laptop.ports import free_port

NUMBER = 1000
LOCKED = 650


@contextmanager
def locked(database_url: str, task_id: str) -> Iterator[None]:
    """Somebody holds a task, and whoever wants to change it waits."""
    with asyncio.Runner() as runner:

        async def lock() -> asyncpg.Connection:
            connection = await asyncpg.connect(database_url)
            await connection.execute("BEGIN")
            await connection.execute("SELECT 1 FROM tasks WHERE task_id = $1 FOR UPDATE", task_id)
            return connection

        connection = runner.run(lock())
        try:
            yield
        finally:
            runner.run(connection.close())


def cancel_all(client: Client, number: int) -> str:
    change = {"action": "cancel", "filter": {"tag": "these"}}
    accepted = client.http.post("/api/v1/tasks/bulk", json=change)
    assert (accepted.status_code, accepted.json()["matched"]) == (202, number)
    return f"/api/v1/bulk/{accepted.json()['bulk_id']}"


def finished(client: Client, path: str) -> dict[str, Any]:
    def job() -> dict[str, Any] | None:
        document: dict[str, Any] = client.http.get(path).json()
        return document if document["state"] == "finished" else None

    return wait_until("finished", job, seconds=120)


def test_a_job_whose_api_and_janitor_were_killed_in_the_middle_goes_on_in_others(
    stopped_windlass: Windlass, database_url: str
) -> None:
    windlass = stopped_windlass
    api, janitor = windlass.start("api"), windlass.start("janitor")
    windlass.wait_until_answering()
    ids = sorted(windlass.client.submit_many([{"delay_seconds": 3600, "tags": ["these"]}] * NUMBER))
    (other,) = windlass.client.submit_many([{"delay_seconds": 3600}])
    with locked(database_url, ids[LOCKED]):
        path = cancel_all(windlass.client, NUMBER)
        half = wait_until("half way", lambda: (job := windlass.client.http.get(path).json())["done"] == 600 and job)
        assert (half["state"], half["changed"]) == ("running", 600)
        second = windlass.start_api()
        windlass.start("janitor")
        for process in (api, janitor):
            process.kill()
            process.wait()
    job = finished(second, path)
    assert (job["matched"], job["done"], job["changed"]) == (NUMBER, NUMBER, NUMBER)
    cancels = "SELECT task_id, count(*) FROM task_events WHERE type = 'cancel' GROUP BY task_id"
    assert {str(row["task_id"]): row["count"] for row in ask(database_url, cancels)} == dict.fromkeys(ids, 1)
    assert second.get(other)["status"] == "queued"


def test_a_job_waits_for_a_janitor_which_is_called_and_needs_no_rabbitmq(
    stopped_windlass: Windlass, database_url: str
) -> None:
    windlass = stopped_windlass
    windlass.start("api")
    windlass.wait_until_answering()
    windlass.client.submit_many([{"delay_seconds": 3600, "tags": ["these"]}] * 3)
    path = cancel_all(windlass.client, 3)
    assert windlass.client.http.get(path).json()["state"] == "running", "the api only accepts"
    # One that asks by itself only once in ten minutes: what is quick has been called.
    seldom = {"WINDLASS_SAFETY_POLL_SECONDS": "600", "WINDLASS_AMQP_URL": f"amqp://127.0.0.1:{free_port()}"}
    windlass.start("janitor", **seldom)
    assert finished(windlass.client, path)["changed"] == 3, "it was left behind"
    listens = """
        SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND application_name LIKE 'windlass-janitor-listen %'
    """
    assert len(ask(database_url, listens)) == 1, "one connection hears every call"
    windlass.client.submit_many([{"delay_seconds": 3600, "tags": ["these"]}] * 4)
    assert finished(windlass.client, cancel_all(windlass.client, 4))["changed"] == 4

"""A bulk job outlives the api that accepted it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from tests.support.installation import Windlass
from tests.support.servers.databases import ask
from tests.support.waiting import wait_until

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


def test_a_job_whose_api_was_killed_in_the_middle_goes_on_in_another(
    stopped_windlass: Windlass, database_url: str
) -> None:
    windlass = stopped_windlass
    api = windlass.start("api")
    windlass.wait_until_answering()
    ids = sorted(windlass.client.submit_many([{"delay_seconds": 3600, "tags": ["these"]}] * NUMBER))
    (other,) = windlass.client.submit_many([{"delay_seconds": 3600}])
    with locked(database_url, ids[LOCKED]):
        change = {"action": "cancel", "filter": {"tag": "these"}}
        accepted = windlass.client.http.post("/api/v1/tasks/bulk", json=change)
        assert (accepted.status_code, accepted.json()["matched"]) == (202, NUMBER)
        path = f"/api/v1/bulk/{accepted.json()['bulk_id']}"
        half = wait_until("half way", lambda: (job := windlass.client.http.get(path).json())["done"] == 600 and job)
        assert (half["state"], half["changed"]) == ("running", 600)
        second = windlass.start_api()
        api.kill()
        api.wait()
    job = wait_until("finished", lambda: (job := second.http.get(path).json())["state"] == "finished" and job)
    assert (job["matched"], job["done"], job["changed"]) == (NUMBER, NUMBER, NUMBER)
    cancels = "SELECT task_id, count(*) FROM task_events WHERE type = 'cancel' GROUP BY task_id"
    assert {str(row["task_id"]): row["count"] for row in ask(database_url, cancels)} == dict.fromkeys(ids, 1)
    assert second.get(other)["status"] == "queued"

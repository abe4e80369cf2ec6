"""What a client is refused is an answer, and no error in the log of whoever runs the Postgres."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import asyncpg
import httpx
import pytest

from tests.support.an_api import an_api
from tests.support.installation import NOBODY, Client, Windlass
from tests.support.servers.databases import execute
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until

PROBE = {"actor": "probe", "delay_seconds": 3600}


@pytest.fixture(scope="module")
def windlass(servers: Servers, migrated_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Windlass]:
    """On a database that notes errors down, as a Postgres of the operator's own does."""
    noting = "ALTER DATABASE {database} SET log_min_messages = 'error'"
    with an_api(servers, migrated_template, tmp_path_factory.mktemp("quiet"), before=noting) as windlass:
        yield windlass


def noted(servers: Servers, windlass: Windlass) -> list[str]:
    """The lines with an error in the server's log so far: whatever it was asked before this, it has written down."""
    mark = uuid4().hex
    execute(windlass.environment["WINDLASS_DATABASE_URL"], f"DO $$ BEGIN RAISE LOG '{mark}'; END $$")
    wait_until("the log's newest line", lambda: mark in Path(servers.log).read_text())
    return [line for line in Path(servers.log).read_text().splitlines() if "ERROR" in line]


def refusals(client: Client, url: str) -> list[httpx.Response]:
    http = client.http
    key = {"Idempotency-Key": "mine"}
    http.post("/api/v1/tasks", json=PROBE, headers=key).raise_for_status()
    first = client.submit(delay_seconds=3600, dedupe_key="d")
    client.cancel(first["task_id"]).raise_for_status()
    client.submit(delay_seconds=3600, dedupe_key="d")
    unknown = {**PROBE, "depends_on": [str(NOBODY)]}
    return [
        http.post("/api/v1/tasks", json={**PROBE, "priority": 3}, headers=key),
        http.post("/api/v1/tasks", json=unknown),
        http.post("/api/v1/tasks", json={**unknown, "dedupe_key": "e"}),
        http.post("/api/v1/tasks", json=unknown, headers={"Idempotency-Key": "other"}),
        http.post("/api/v1/tasks/batch", json={"tasks": [PROBE, unknown]}),
        http.post("/api/v1/tasks/batch", json={"tasks": [{**PROBE, "dedupe_key": "f"}, unknown]}),
        asyncio.run(while_in_flight(client, url)),
        client.retry(first["task_id"]),
        client.cancel(str(NOBODY)),
        client.retry(str(NOBODY)),
        http.get("/api/v1/tasks", params={"cursor": "nonsense"}),
        http.get("/api/v1/tasks", params={"q": "\0"}),
        http.patch("/api/v1/providers/nobody", json={"limit": 1}),
        *of_memory(http),
        http.get("/api/v1/tasks", headers={"Authorization": "Bearer wl_nobody_abcdefghijklmnopqrstuvwxyz"}),
    ]


def of_memory(http: httpx.Client) -> list[httpx.Response]:
    (model,) = http.get("/api/v1/embedding-models").json()["items"]
    return [
        http.post("/api/v1/embedding-models", json={name: model[name] for name in ("name", "provider", "dimensions")}),
        http.delete(f"/api/v1/embedding-models/{model['model_id']}"),
        http.delete(f"/api/v1/agent-events/{NOBODY}"),
        http.post(f"/api/v1/embedding-jobs/{NOBODY}/retry"),
        http.get("/api/v1/memory/search", params={"q": "light:* & (house '"}),
    ]


async def while_in_flight(client: Client, url: str) -> httpx.Response:
    """Somebody else has begun to submit under the same key, and comes to no end."""
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            await connection.execute(
                "INSERT INTO submission_keys (user_id, kind, key, task_id, expires_at) "
                "SELECT user_id, 'idempotency', 'slow', gen_random_uuid(), now() + '1h' FROM tasks LIMIT 1"
            )
            headers = {"Idempotency-Key": "slow"}
            return await asyncio.to_thread(client.http.post, "/api/v1/tasks", json=PROBE, headers=headers)
    finally:
        await connection.close()


def test_a_refusal_is_no_error_of_the_server_s(windlass: Windlass, servers: Servers) -> None:
    before = noted(servers, windlass)
    statuses = [
        response.status_code for response in refusals(windlass.client, windlass.environment["WINDLASS_DATABASE_URL"])
    ]
    assert statuses == [422, 422, 422, 422, 422, 422, 409, 409, 404, 404, 422, 422, 404, 409, 409, 404, 404, 200, 401]
    assert noted(servers, windlass) == before
    assert [task["dedupe_key"] for task in windlass.client.tasks()] == ["d", "d", None], "what was refused left nothing"
    again = windlass.client.http.post("/api/v1/tasks", json=PROBE, headers={"Idempotency-Key": "other"})
    assert again.status_code == 201, "nor did it use its key up"


def test_an_error_would_have_been_seen(windlass: Windlass, servers: Servers) -> None:
    before = len(noted(servers, windlass))
    with pytest.raises(asyncpg.DivisionByZeroError):
        execute(windlass.environment["WINDLASS_DATABASE_URL"], "SELECT 1 / 0")
    assert len(noted(servers, windlass)) == before + 1

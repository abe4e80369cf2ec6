"""The api while Postgres is away: 503 from every operation, and everything is back by itself."""

import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import a_database
from tests.support.an_api import new_key
from tests.support.installation import NOBODY, START_SECONDS, Client, Windlass
from tests.support.operations import OPERATIONS, May
from tests.support.servers.databases import ask as ask_postgres
from tests.support.servers.databases import execute, migrate
from tests.support.servers.forwarder import Forwarder, forwarding
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until
from windlass.shared.store.access import keys
from windlass.shared.store.operating import registry

LISTENS = """
SELECT count(*) = 1 AS listens FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'windlass-api-listen %'
  AND query NOT LIKE 'LISTEN%' AND query <> ''
"""
"""It listens on every channel and has asked its first question: what it kept has been forgotten, not a moment later."""


@pytest.fixture(scope="module")
def road(servers: Servers, migrated_template: str) -> Iterator[Forwarder]:
    with a_database(servers, migrated_template) as url, forwarding(url) as road:
        yield road


@pytest.fixture(scope="module")
def windlass(road: Forwarder, servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Windlass]:
    windlass = Windlass(road.url, servers.amqp_url, tmp_path_factory.mktemp("api"))
    try:
        windlass.api = windlass.start("api")
        windlass.wait_until_answering()
        yield windlass
    finally:
        windlass.stop()
        print(windlass.log())


@contextmanager
def cut(road: Forwarder) -> Iterator[None]:
    road.cut()
    try:
        yield
    finally:
        road.mend()


def wait_until_back(windlass: Windlass, road: Forwarder) -> None:
    wait_until("back by itself", lambda: windlass.client.http.get("/api/v1/tasks").status_code == 200)
    wait_until("listening again", lambda: ask_postgres(road.server_url, LISTENS)[0]["listens"])


def ask(client: Client, operation: str) -> httpx.Response:
    method, path = operation.split(" ")
    body = OPERATIONS[operation].body
    said: dict[str, Any] = (
        {"content": body, "headers": {"Content-Type": "image/png"}} if isinstance(body, bytes) else {"json": body}
    )
    return client.http.request(method, path.replace("{}", str(NOBODY)), **said)


def test_every_operation_answers_503_and_works_again_when_postgres_is_back(road: Forwarder, windlass: Windlass) -> None:
    client = windlass.client
    unknown_key = client.with_key(keys.new_key())
    paths = client.http.get("/schema/openapi.json").json()["paths"]
    there = {f"{method.upper()} {re.sub('{[^}]*}', '{}', path)}" for path in paths for method in paths[path]}
    # What is refused at once needs no database: the shortcuts without a payload, a search without a question.
    tried = [
        each
        for each in there & set(OPERATIONS)
        if "/health" not in each and not OPERATIONS[each].fine & {400, 403, 422}
    ]
    tried.remove("POST /api/v1/callbacks/provider/{}")
    tried.remove("GET /metrics")  # says what it knows, and that Postgres is away
    # A key has no session that could be ended, and when something is due can be reckoned.
    by_heart = ("GET /api/v1/actors", "DELETE /api/v1/session", "POST /api/v1/schedules/preview")
    tried = [each for each in tried if not each.startswith(by_heart)]
    assert len(tried) > 15
    assert client.http.get("/api/v1/tasks").status_code == 200
    with cut(road):
        for operation in tried:
            needs_key = OPERATIONS[operation].may is not May.ANYBODY
            for asker in (client, unknown_key) if needs_key else (client,):
                answer = ask(asker, operation)
                assert answer.status_code == 503, (operation, answer.text)
                assert int(answer.headers["Retry-After"]) > 0
                assert answer.headers["Content-Type"] == "application/problem+json"
                assert answer.json()["code"] == "database-unavailable"
    wait_until_back(windlass, road)
    wait_until("ready again", lambda: client.http.get("/health/ready").status_code == 200)
    assert unknown_key.http.get("/api/v1/tasks").status_code == 401


def test_health_says_what_each_may_know(road: Forwarder, windlass: Windlass) -> None:
    stranger = windlass.client.with_key("none")
    # A key of its own, seen just now: what the api has kept of an older one may end during this test.
    known = windlass.client.with_key(new_key(windlass.client, "user", "bea"))
    assert known.http.get("/api/v1/tasks").status_code == 200
    with cut(road):
        components = known.http.get("/health").json()["components"]
        assert components["postgres"]["status"] == "unhealthy"
        assert components["broker"]["status"] == "unknown"
        assert stranger.http.get("/health/live").status_code == 200
        health = stranger.http.get("/health")
        assert (health.status_code, health.json()["status"]) == (200, "unhealthy")
        assert set(health.json()) == {"status", "timestamp"}
        ready = stranger.http.get("/health/ready")
        assert (ready.status_code, ready.json()["status"]) == (503, "not-ready")
        assert int(ready.headers["Retry-After"]) > 0
        assert "127.0.0.1" not in ready.text, "no addresses for everybody"
    wait_until_back(windlass, road)


def test_a_key_revoked_while_nobody_could_hear_of_it_opens_nothing_afterwards(
    road: Forwarder, windlass: Windlass
) -> None:
    key = new_key(windlass.client, "user", "ann")
    ann = windlass.client.with_key(key)
    assert ann.http.get("/api/v1/tasks").status_code == 200
    with cut(road):
        assert ann.http.get("/api/v1/tasks").status_code == 503
        revoke = f"UPDATE api_keys SET revoked_at = clock_timestamp() WHERE key_id = '{key.split('_')[1]}'"
        execute(road.server_url, revoke)
    # As soon as it listens again, and not only when what is kept would be looked up again.
    wait_until_back(windlass, road)
    assert ann.http.get("/api/v1/tasks").status_code == 401


REFUSING = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE 'could not extend file' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON tasks EXECUTE FUNCTION refuse()
"""
"""A disk that is full for tasks alone; `tests/integration/test_full_disk.py` has a real one."""


def test_a_submit_for_which_there_is_no_room_is_told_so(road: Forwarder, windlass: Windlass) -> None:
    execute(road.server_url, REFUSING)
    try:
        answer = windlass.client.http.post("/api/v1/tasks", json={"actor": "probe"})
    finally:
        execute(road.server_url, "DROP FUNCTION refuse CASCADE")
    assert (answer.status_code, answer.json()["code"]) == (503, "database-unavailable")
    assert answer.json()["detail"].startswith("nothing was stored")
    assert "its disk is full" in answer.json()["detail"]
    assert windlass.client.submit()["status"] == "queued"


def test_health_says_that_nothing_can_be_stored(servers: Servers, road: Forwarder, windlass: Windlass) -> None:
    name = road.server_url.rpartition("/")[2]
    execute(servers.database_url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    try:
        connect_anew(road)
        wait_until("it is said", lambda: "read-only" in postgres_of(windlass).get("detail", ""))
        assert postgres_of(windlass)["status"] == "degraded"
        wait_until("reading goes on", lambda: windlass.client.http.get("/health/ready").status_code == 200)
    finally:
        execute(servers.database_url, f"ALTER DATABASE {name} RESET default_transaction_read_only")
        connect_anew(road)
    wait_until_back(windlass, road)
    wait_until("it is well", lambda: postgres_of(windlass)["status"] == "healthy")


def connect_anew(road: Forwarder) -> None:
    """So that what is set for the database is in force."""
    road.cut()
    road.mend()


def postgres_of(windlass: Windlass) -> dict[str, str]:
    health = windlass.client.http.get("/health").json()
    found: dict[str, str] = health.get("components", {}).get("postgres", {"status": "unknown"})
    return found


def test_before_the_first_migration_it_waits(servers: Servers, empty_database_url: str, tmp_path: Path) -> None:
    windlass = Windlass(empty_database_url, servers.amqp_url, tmp_path)
    client = windlass.client
    try:
        windlass.start("api")
        wait_until("alive", lambda: is_alive(client), seconds=START_SECONDS)
        assert client.http.get("/health/ready").status_code == 503
        answer = client.http.get("/api/v1/tasks")
        assert (answer.status_code, answer.json()["code"]) == (503, "database-unavailable")
        assert "windlass migrate" in answer.json()["detail"]
        migrate(empty_database_url)
        windlass.wait_until_answering()
        assert client.http.get("/api/v1/tasks").status_code == 200
    finally:
        windlass.stop()


def test_who_has_not_read_yet_which_actors_there_are_calls_none_unknown(road: Forwarder, windlass: Windlass) -> None:
    """Its client would take that for the last word."""
    task = {"actor": "translate", "payload": {}}
    execute(road.server_url, "ALTER TABLE actor_versions RENAME TO out_of_sight")
    try:
        client = windlass.start_api()
        for asked in (client.http.post("/api/v1/tasks", json=task), client.http.get("/api/v1/actors/translate")):
            assert (asked.status_code, asked.json()["code"]) == (503, "database-unavailable")
            assert int(asked.headers["Retry-After"]) > 0
        assert client.http.get("/schema/openapi.json").status_code == 200
    finally:
        execute(road.server_url, "ALTER TABLE out_of_sight RENAME TO actor_versions")
    execute(road.server_url, f"NOTIFY {registry.CHANNEL}")
    wait_until("it has read them", lambda: client.http.get("/api/v1/actors").status_code == 200)
    assert client.http.post("/api/v1/tasks", json=task).json()["code"] == "unknown-actor"
    windlass.processes[-1].terminate()
    assert windlass.processes[-1].wait(60) == 0


def is_alive(client: Client) -> bool:
    with suppress(httpx.TransportError):
        return client.http.get("/health/live").status_code == 200
    return False


def test_a_database_that_lets_nobody_in_is_away(servers: Servers, road: Forwarder, windlass: Windlass) -> None:
    name = road.server_url.rpartition("/")[2]
    execute(servers.database_url, f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    execute(servers.database_url, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
    answer = windlass.client.http.get("/api/v1/tasks")
    assert (answer.status_code, answer.json()["code"]) == (503, "database-unavailable")
    execute(servers.database_url, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    wait_until_back(windlass, road)


@pytest.mark.parametrize("how", ["cut", "frozen"])
def test_told_to_stop_while_postgres_is_away_it_stops(road: Forwarder, windlass: Windlass, how: str) -> None:
    client = windlass.start_api()
    api = windlass.processes[-1]
    assert client.http.get("/api/v1/tasks").status_code == 200
    asking = threading.Thread(target=ask_quietly, args=(client,))
    if how == "cut":
        road.cut()
    else:
        road.freeze()
    asking.start()
    try:
        api.send_signal(signal.SIGTERM)
        assert api.wait(60) == 0
    finally:
        road.cut()
        road.mend()
        asking.join()


def ask_quietly(client: Client) -> None:
    with suppress(httpx.TransportError):
        client.http.get("/api/v1/tasks")

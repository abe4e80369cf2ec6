"""Secrets planted wherever they could slip out, then looked for in every table, every log line and every answer."""

import secrets
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.installation import PROJECT, Client, Windlass, answers
from tests.support.servers.databases import ask
from tests.support.waiting import wait_until
from windlass.services.laptop.ports import free_port

LEAKING_ACTOR = Path(__file__).parent / "leaking_actor"
CONFIG = """
[providers.probe]
actor = "probe"
api_key_env = "CANARY_PROVIDER_KEY"
"""
PLANTED_BY_ACTOR = ("PROVIDER_KEY", "MESSAGE", "URL", "QUERY", "HEADER", "STACK_TRACE")
NOWHERE = "127.0.0.1:1"


@pytest.fixture
def canaries() -> dict[str, str]:
    names = (*PLANTED_BY_ACTOR, "WRONG_KEY", "DATABASE", "BROKER", "SETTING", "TOKEN", "PAYLOAD", "LABEL")
    return {name: f"canary{secrets.token_hex(12)}" for name in names}


@pytest.fixture
def windlass(stopped_windlass: Windlass, canaries: dict[str, str]) -> Windlass:
    windlass = stopped_windlass
    Path(windlass.environment["WINDLASS_CONFIG"]).write_text(CONFIG)
    windlass.environment |= {f"CANARY_{name}": canaries[name] for name in PLANTED_BY_ACTOR}
    windlass.environment |= {"WINDLASS_LOG_LEVEL": "debug", "WINDLASS_QUEUES": ""}
    for service in ("api", "dispatcher", "janitor", "orchestrator"):
        windlass.start(service)
    windlass.start("actors", PYTHONPATH=f"{PROJECT}:{LEAKING_ACTOR}")
    windlass.wait_until_healthy()
    return windlass


def rows_of_every_table(url: str) -> str:
    tables = ask(url, "SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = 'public'")
    assert len(tables) > 10
    return "\n".join(
        str(row["content"]) for table in tables for row in ask(url, f"SELECT t::text AS content FROM {table['name']} t")
    )


def answers_about(client: Client, task_id: str) -> str:
    paths = (f"/api/v1/tasks/{task_id}", f"/api/v1/tasks/{task_id}/events", f"/api/v1/tasks/{task_id}/stream")
    return "\n".join(
        client.http.get(path).text
        for path in (*paths, "/api/v1/tasks?full=true", "/api/v1/keys", "/api/v1/audit", "/health", "/metrics")
    )


def test_no_secret_is_stored_logged_or_answered(windlass: Windlass, canaries: dict[str, str]) -> None:
    client = windlass.client
    failed = client.finished(client.submit(payload={"outcome": "permanent"})["task_id"])
    completed = client.finished(client.submit(**submitted_with_secrets(canaries))["task_id"])
    assert (failed["status"], completed["status"]) == ("dead", "completed")
    said = [answers_about(client, task["task_id"]) for task in (failed, completed)]
    said += asked_wrongly(client, canaries)
    said += without_servers(windlass, canaries)

    rows = rows_of_every_table(windlass.environment["WINDLASS_DATABASE_URL"])
    everything = {"the database": rows, "the logs": windlass.log(), "the answers": "\n".join(said)}
    servers = ("WINDLASS_DATABASE_URL", "WINDLASS_AMQP_URL")
    passwords = {name: str(urlsplit(windlass.environment[name]).password) for name in servers}
    for name, secret in {**canaries, **passwords, "the key": windlass.environment["WINDLASS_API_KEY"]}.items():
        for place, text in everything.items():
            assert secret not in text, f"{name} is in {place}: …{text[max(0, text.find(secret) - 300) :][:600]}"

    # What surrounded the secrets is there, or there was nothing to look for.
    error = failed["error"]
    assert "refused: Authorization" in error["message"]
    assert "cannot reach amqp://" in error["stack_trace"]
    assert "example.org/v1?size=2" in error["details"]["url"]
    sent = {"Authorization": "[scrubbed]", "url": "https://[scrubbed]@example.org"}
    assert completed["result"] == {"said": ["it was [scrubbed]"], "sent": sent}
    assert completed["payload"]["result"][1] == "Authorization: [scrubbed]"
    assert completed["tags"] == ["nightly", "Bearer [scrubbed]", "[scrubbed]"]
    assert "refused: Authorization" in everything["the logs"]
    assert "the key is [scrubbed]" in rows


def submitted_with_secrets(canaries: dict[str, str]) -> dict[str, Any]:
    """A client that writes secrets wherever a task has room for words."""
    text, label = canaries["PAYLOAD"], canaries["LABEL"]
    written = [canaries["PROVIDER_KEY"], f"Authorization: Bearer {text}", {"url": f"https://me:{text}@example.org"}]
    return {
        "payload": {"result": written},
        "tags": ["nightly", f"Bearer {label}", canaries["PROVIDER_KEY"]],
        "project_id": f"https://me:{label}@example.org/it.git",
        "workflow_id": f"wl_canary1_{label}",
        "task_type": f"Authorization: {label}",
    }


def asked_wrongly(client: Client, canaries: dict[str, str]) -> list[str]:
    """A wrong key in the header, a secret in the address, in a body that is refused, and in a path."""
    wrong, token = f"wl_canary1_{canaries['WRONG_KEY']}", canaries["TOKEN"]
    return [
        client.http.get("/api/v1/tasks", headers={"Authorization": f"Bearer {wrong}"}).text,
        client.http.get("/api/v1/tasks", params={"token": token, "limit": f"token={token}"}).text,
        client.http.get(f"/api/v1/tasks/{wrong}").text,
        client.http.post("/api/v1/tasks", json={"actor": f"https://me:{token}@example.org"}).text,
        client.http.post("/api/v1/tasks", content=f'{{"password": "{token}"').text,
        client.http.delete(f"/api/v1/keys/{wrong}").text,
        client.http.post(
            "/api/v1/tasks", json={"actor": "probe", "dedupe_key": f"https://me:{token}@example.org"}
        ).text,
        client.http.post("/api/v1/tasks", json={"actor": "probe"}, headers={"Idempotency-Key": wrong}).text,
        client.http.post("/api/v1/keys", json={"role": "user", "user_id": "ann", "name": f"for {wrong}"}).text,
    ]


def without_servers(windlass: Windlass, canaries: dict[str, str]) -> list[str]:
    """Processes whose servers are not there, and one that is given a key which is none."""
    port = free_port()
    database = f"postgresql://windlass:{canaries['DATABASE']}@{NOWHERE}/windlass"
    broker = f"amqp://windlass:{canaries['BROKER']}@{NOWHERE}"
    for service in ("api", "dispatcher", "actors", "janitor", "orchestrator"):
        windlass.start(service, WINDLASS_DATABASE_URL=database, WINDLASS_AMQP_URL=broker, WINDLASS_PORT=str(port))
    windlass.start("dispatcher", WINDLASS_AMQP_URL=broker)
    refused = windlass.start("api", WINDLASS_API_KEY=canaries["SETTING"])
    assert refused.wait(60) != 0
    client = Client(f"http://127.0.0.1:{port}")
    windlass.clients.append(client)
    wait_until("all have noticed", lambda: windlass.log().count("Postgres (") >= 4)
    wait_until("the api without Postgres answers", lambda: answers(client, "/health/live"))
    paths = ("/health", "/health/ready", "/metrics", "/api/v1/tasks")
    return [client.http.get(path).text for path in paths]

"""What Prometheus reads from a whole Windlass: every declared metric is said, and what is counted is what happened."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import httpx
import pytest

from tests.acceptance.conftest import a_windlass, let_the_next_attempt_be_short
from tests.conftest import a_database, a_virtual_host
from tests.support.a_project import run_a_project
from tests.support.installation import Client, Windlass
from tests.support.metrics import Said, ask
from tests.support.providers.fake_providers import fake_providers
from tests.support.servers.forwarder import Forwarder, forwarding
from tests.support.servers.private_servers import Servers, open_directory
from tests.support.waiting import wait_until
from windlass.services.laptop.ports import free_port
from windlass.shared.metrics import catalogue
from windlass.shared.settings import Settings

CONFIG = """
[providers.sturdy]
actor = "probe"

[providers.orderly]
actor = "probe"

[providers.fragile]
actor = "probe"

[providers.leonardo]
poll_seconds = 0.1

[agents.sleeper]
command = ["/bin/sleep", "600"]
sandbox = "off"
"""
QUEUES = "probe.sturdy,probe.orderly,probe.fragile,media.leonardo,summarize.openrouter,agent.local,webhook.http"
SERVICES = ("api", "dispatcher", "actors", "janitor", "orchestrator")


@dataclass
class Watched:
    """A Windlass, the port at which each of its services answers Prometheus, and its way to Postgres."""

    windlass: Windlass
    ports: dict[str, int]
    road: Forwarder
    amqp_url: str

    @property
    def client(self) -> Client:
        return self.windlass.client

    def said(self, *services: str) -> Said:
        return Said(*(ask(self.ports[service]) for service in services or SERVICES))

    def wait_for(self, name: str, value: float, **labels: str) -> None:
        """Also for an endpoint whose process is just being replaced."""

        def is_said() -> bool:
            with suppress(httpx.TransportError):
                return self.said().total(name, **labels) == value
            return False

        wait_until(f"{name} {labels} is {value:g}", is_said)


@pytest.fixture(scope="module")
def watched(
    servers: Servers, migrated_template: str, management: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Watched]:
    directory = tmp_path_factory.mktemp("metrics")
    ports = {service: free_port() for service in SERVICES}
    with (
        fake_providers(directory) as fake,
        open_directory() as data,
        a_database(servers, migrated_template) as database_url,
        a_virtual_host(servers, management) as amqp_url,
        forwarding(database_url) as road,
        a_windlass(
            road.url,
            amqp_url,
            directory,
            config=CONFIG,
            WINDLASS_DATA_DIR=str(data),
            WINDLASS_QUEUES=QUEUES,
            WINDLASS_BREAKER_LEAST_RESULTS="3",
            WINDLASS_BREAKER_OPEN_SECONDS="600",
            WINDLASS_FAKE_PROVIDERS_URL=fake.url,
        ) as windlass,
    ):
        fake.change(job_seconds=0.2)
        for service, port in ports.items():
            windlass.start(service, WINDLASS_METRICS_PORT=str(port))
        windlass.wait_until_healthy()
        yield Watched(windlass, ports, road, amqp_url)


def test_what_happens_is_counted_once_and_every_metric_is_said(watched: Watched) -> None:
    client = watched.client
    schedule = {"name": "soon", "every_seconds": 10, "target": {"task": {"actor": "probe", "provider": "orderly"}}}
    client.http.post("/api/v1/schedules", json=schedule).raise_for_status()
    things_happen_to_probes(client)
    things_happen_at_providers(client)
    run_a_project(client, provider="orderly")
    watched.wait_for("windlass_project_stops_total", 1, reason="finished")
    a_webhook_is_tried_and_memory_asked(client)
    watched.wait_for("windlass_webhook_tries_total", 1, outcome="forbidden")
    begun = {"kind": "task", "outcome": "started"}
    wait_until("it was due", lambda: watched.said("orchestrator").total("windlass_schedule_runs_total", **begun) >= 1)
    client.http.get("/nowhere")
    ended = {"actor": "probe", "provider": "sturdy", "outcome": "completed", "fault": "none"}
    watched.wait_for("windlass_tasks_finished_total", 4, **ended)
    said = watched.said()

    assert_probes_are_counted(said)
    assert_providers_are_counted(said)
    # Over HTTP: by the pattern of the route.
    requests = "windlass_http_requests_total"
    assert said.total(requests, method="POST", route="/api/v1/tasks/{task_id}/retry", status="200") == 1
    assert said.total(requests, route="other", status="404") == 1
    assert said.total("windlass_http_request_seconds_count", route="/api/v1/tasks/{task_id}/retry") == 1
    assert said.total("windlass_stream_delay_seconds_count", kind="task") >= 1
    assert said.total("windlass_stream_clients") == 0

    # A refusal is what only those hear that run alone, and they have no endpoint of their own.
    declared = {each.name for part in catalogue.parts() for each in part.metrics} - {"windlass_claims_refused_total"}
    assert declared <= said.names()
    assert {f"windlass_process_{name}" for name in catalogue.PROCESS} <= said.names()
    assert {sample.labels["service"] for sample in said.samples if sample.name == "windlass_build_info"} == set(
        SERVICES
    )
    assert_labels_are_bounded(said)


def test_places_are_told_by_their_kind(watched: Watched) -> None:
    places, settings = "windlass_worker_places", Settings()
    task_id = watched.client.submit(provider="sturdy", payload={"seconds": 600})["task_id"]
    try:
        watched.client.wait_until(task_id, "running")
        watched.wait_for(places, 1, kind="thread", state="busy")
        watched.wait_for(places, 0, kind="loop", state="busy")
        watched.wait_for(places, settings.async_places, kind="loop", state="idle")
    finally:
        watched.client.cancel(task_id).raise_for_status()
    watched.wait_for(places, 0, kind="thread", state="busy")


def a_webhook_is_tried_and_memory_asked(client: Client) -> None:
    """A name whose addresses are refused when it is resolved."""
    made = client.http.post("/api/v1/webhooks", json={"url": "https://localhost:9/", "events": ["task.*"]}).json()
    client.http.post(f"/api/v1/webhooks/{made['webhook_id']}/test").raise_for_status()
    client.http.post(f"/api/v1/webhooks/{made['webhook_id']}/disable").raise_for_status()
    client.http.post("/api/v1/memory/search", json={"q": "anything"}).raise_for_status()


def things_happen_to_probes(client: Client) -> None:
    client.submit(provider="sturdy", wait=40)
    client.submit(
        provider="sturdy", payload={"outcome": "transient", "error_type": "TimedOut", "fail_times": 1}, wait=40
    )

    dying = client.submit(
        provider="sturdy", payload={"outcome": "permanent", "error_type": "InvalidInput", "seconds": 5}
    )
    child = client.submit(provider="sturdy", depends_on=[dying["task_id"]])
    for task in (dying, child):
        assert client.finished(task["task_id"])["status"] == "dead"
    client.retry(dying["task_id"]).raise_for_status()
    client.wait_until_attempt(dying["task_id"], 2)
    for task in (dying, child):
        assert client.finished(task["task_id"])["status"] == "dead"

    delayed = client.submit(provider="sturdy", delay_seconds=3600)
    assert client.cancel(delayed["task_id"]).status_code == 200
    assert client.cancel(delayed["task_id"]).status_code == 200, "once more changes nothing"
    for _ in range(2):
        client.submit(provider="sturdy", dedupe_key="once", wait=40)
    old = client.submit(provider="sturdy", delay_seconds=3600, max_age_seconds=1)
    streamed = client.submit(provider="sturdy", payload={"seconds": 1, "steps": 4})
    with client.stream(streamed["task_id"]) as events:
        assert [name for _, name, _ in events][-1] == "complete"
    assert client.finished(old["task_id"])["error"]["type"] == "Expired"


def things_happen_at_providers(client: Client) -> None:
    for task_id in client.submit_many(
        [{"provider": "fragile", "max_retries": 0, "payload": {"outcome": "transient"}} for _ in range(3)]
    ):
        client.finished(task_id)
    text = "The keeper wrote a line into the log. [[429=1 x1]]"
    summary = client.submit(actor="summarize", payload={"content": text})
    picture = client.submit(actor="media", provider="leonardo", payload={"action": "txt2img", "prompt": "a boat"})
    agent = client.submit(actor="agent", payload={"subagent_type": "sleeper", "prompt": "Sleep."})
    client.wait_until(agent["task_id"], "running")
    assert client.cancel(agent["task_id"]).status_code == 202
    for task, status in ((agent, "cancelled"), (summary, "completed"), (picture, "completed")):
        assert client.finished(task["task_id"])["status"] == status


def assert_probes_are_counted(said: Said) -> None:
    probes = {"actor": "probe", "provider": "sturdy"}

    def ended(outcome: str, fault: str) -> float:
        return said.total("windlass_tasks_finished_total", **probes, outcome=outcome, fault=fault)

    assert said.total("windlass_tasks_submitted_total", **probes) == 8
    assert ended("completed", "none") == 4
    assert ended("dead", "user") == 4, "the one that died, and the one that depended on it, twice"
    assert ended("dead", "system") == 1, "the one that was too old"
    assert ended("cancelled", "none") == 1
    assert said.total("windlass_tasks_finished_total", **probes) == 10
    assert said.total("windlass_tasks_revived_total", **probes) == 2
    assert said.total("windlass_attempts_started_total", **probes) == 7
    for outcome, number in {
        "completed": 4,
        "retried": 1,
        "buried": 2,
        "cancelled": 0,
        "interrupted": 0,
        "lost": 0,
    }.items():
        assert said.total("windlass_attempts_finished_total", **probes, outcome=outcome) == number
    assert said.total("windlass_attempt_errors_total", **probes, error_type="TimedOut", next="retried") == 1
    assert said.total("windlass_attempt_errors_total", **probes, error_type="InvalidInput", next="buried") == 2
    assert said.total("windlass_task_queue_wait_seconds_count", **probes, attempt="first") == 5
    assert said.total("windlass_task_queue_wait_seconds_count", **probes, attempt="later") == 2
    assert said.total("windlass_task_run_seconds_count", **probes) == 7
    assert said.total("windlass_task_end_to_end_seconds_count", **probes) == 4
    assert said.total("windlass_task_end_to_end_seconds_sum", **probes) > 1, "one of them took a second"
    assert said.total("windlass_tasks", **probes, status="dead") == 3
    assert said.total("windlass_tasks", **probes, status="completed") == 4


def assert_providers_are_counted(said: Said) -> None:
    assert said.values("windlass_provider_breaker_state", provider="fragile", state="open") == [1]
    assert said.values("windlass_provider_breaker_state", provider="sturdy", state="closed") == [1]
    finished = "windlass_tasks_finished_total"
    assert said.total(finished, provider="fragile", outcome="dead", fault="provider") == 3
    assert said.total(finished, actor="agent", outcome="cancelled", fault="none") == 1
    assert said.total("windlass_agent_kills_total", reason="cancelled") == 1
    assert said.total("windlass_agent_kills_total") == 1
    calls = "windlass_provider_calls_total"
    assert said.total(calls, provider="openrouter", operation="chat", result="rate_limited") == 1
    assert said.total(calls, provider="openrouter", operation="chat", result="ok") == 1
    assert said.total(calls, provider="leonardo", operation="order", result="ok") == 1
    assert said.total("windlass_provider_call_seconds_count", provider="leonardo", operation="order") == 1
    assert said.total(calls, provider="leonardo", operation="download", result="ok") >= 1
    assert said.total("windlass_attempt_errors_total", error_type="RateLimited", next="retried") == 1
    assert said.total("windlass_provider_tokens_total", direction="prompt") > 0
    assert said.total("windlass_provider_cost_usd_total", provider="openrouter") > 0
    assert said.total("windlass_media_bytes_total", provider="leonardo") > 0
    assert said.values("windlass_provider_slots_limit", provider="leonardo") == [3]
    assert not said.values("windlass_provider_slots_limit", provider="sturdy"), "it has none"


def assert_labels_are_bounded(said: Said) -> None:
    identity = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}|wl_|/nowhere|\badmin\b")
    for sample in said.samples:
        assert not any(identity.search(value) for value in sample.labels.values()), sample


def test_with_a_port_of_its_own_the_api_says_nothing_to_the_world(watched: Watched) -> None:
    assert watched.client.http.get("/metrics").status_code == 200
    assert watched.client.http.get("/metrics", headers={"Authorization": ""}).status_code == 401
    elsewhere = httpx.get(f"http://127.0.0.1:{watched.ports['api']}/api/v1/tasks", timeout=60, trust_env=False)
    assert elsewhere.status_code == 404


def test_without_postgres_every_endpoint_answers_and_nothing_old_is_said(watched: Watched) -> None:
    watched.road.cut()
    try:
        wait_until("it is missed", lambda: watched.said("api").values("windlass_database_answers") == [0])
        names = watched.said().names()
    finally:
        watched.road.mend()
    unknown = {each.name for each in catalogue.of_everything()} - {"windlass_database_answers"}
    assert not unknown & names
    assert {"windlass_http_requests_total", "windlass_worker_places", "windlass_broker_connected"} <= names
    wait_until("it is back", lambda: watched.said("api").values("windlass_database_answers") == [1])
    assert watched.said("api").values("windlass_provider_slots_held", provider="leonardo") == [0]


def test_the_successor_of_a_killed_worker_answers_at_the_same_port(watched: Watched) -> None:
    client = watched.client
    task = client.submit(provider="sturdy", payload={"seconds": 600})
    client.wait_until(task["task_id"], "running")
    let_the_next_attempt_be_short(watched.windlass, task["task_id"])
    (worker,) = client.workers()
    os.kill(worker["pid"], signal.SIGKILL)
    assert client.finished(task["task_id"])["status"] == "completed"
    # Its successor takes the task back, or the janitor if it is quicker.
    watched.wait_for("windlass_stalls_total", 1, provider="sturdy")
    watched.wait_for("windlass_workers_lost_total", 1)
    said = watched.said("actors")
    assert said.total("windlass_attempts_started_total", provider="sturdy") == 1, "it counts from the beginning"

"""A real Prometheus reads a Windlass at work: every panel shows something, and an alert that should fire fires."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from tests.acceptance.conftest import a_windlass_apart
from tests.monitoring.programs import program
from tests.monitoring.prometheus import Prometheus, a_prometheus
from tests.monitoring.written import Expression, panel_expressions
from tests.support.a_project import run_a_project
from tests.support.installation import Client, Windlass
from tests.support.providers.fake_providers import fake_providers
from tests.support.servers.private_servers import Servers, open_directory
from tests.support.waiting import wait_until
from windlass.services.laptop.ports import free_port

CONFIG = """
[providers.leonardo]
poll_seconds = 0.1

[providers.midjourney]
poll_seconds = 0.1

[providers.nobody]
actor = "probe"

[providers.resting]
actor = "probe"
"""
SERVED = "media.leonardo,media.midjourney,summarize.openrouter,agent.local,probe.probe,embed.hash,webhook.http"
RATE_WINDOW = "10s"
QUEUE = {"queue": "summarize.openrouter", "its_actor": "summarize", "its_provider": "openrouter"}
"""The one that the dashboard of a queue is opened for: it has a limit."""
RARE = {
    "Agents that were ended, by reason",
    "Errors, by route",
    "Rung for again",
    "Starts that were refused, by reason",
    "Streams cut off",
    "Taken back and handed back",
    "Told to slow down",
    "Workers lost",
}
"""What a good minute has none of: these show their 0. All others must show what was counted."""


@dataclass
class Watched:
    """A Windlass under load, and the Prometheus that reads it."""

    client: Client
    prometheus: Prometheus
    rounds: Iterator[int] = field(default_factory=itertools.count)

    def give_work(self) -> None:
        """A little of everything that succeeds, is retried or dies, and a stream that follows."""
        number = next(self.rounds)
        text = {"content": f"Round {number}. A windlass hauls a heavy load, and its pawl never lets it slip back."}
        picture = {"action": "txt2img", "prompt": f"a boat at dawn {number}"}
        self.client.submit(actor="summarize", payload=text)
        self.client.submit(actor="agent", payload={"subagent_type": "demo", "prompt": "Say it.", "params": {}})
        for provider in ("leonardo", "midjourney"):
            self.client.submit(actor="media", provider=provider, payload=picture)
        if number % 4 == 0:
            self.client.submit(payload={"outcome": "permanent", "error_type": "InvalidInput"})
            self.client.submit(payload={"fail_times": 1, "error_type": "NetworkTimeout"})
        run_a_project(self.client)
        every = 10 if number == 0 else 3600  # one is due again and again, late or not
        self._ask("/schedules", name=f"round-{number}", every_seconds=every, target={"task": {"actor": "probe"}})
        self._ask(f"/schedules/round-{number}/trigger")
        endpoint = self._ask("/webhooks", url=f"https://localhost:9/{number}", events=["webhook.*"])
        self._ask(f"/webhooks/{endpoint['webhook_id']}/test")
        self._ask("/memory/search", q="a boat at dawn")
        followed = self.client.submit(payload={"seconds": 0.3, "steps": 3})
        with self.client.stream(followed["task_id"]) as events:
            assert [name for _, name, _ in events][-1] == "complete"

    def _ask(self, path: str, **body: Any) -> dict[str, Any]:
        answer = self.client.http.post(f"/api/v1{path}", json=body)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found


@pytest.fixture(scope="module")
def watched(
    servers: Servers, migrated_template: str, management: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Watched]:
    program("prometheus")  # where there is none, nothing is started
    directory = tmp_path_factory.mktemp("prometheus")
    with (
        fake_providers(directory, WINDLASS_FAKE_JOB_SECONDS="0.2") as fake,
        open_directory() as data,
        a_windlass_apart(
            servers,
            migrated_template,
            management,
            directory,
            config=CONFIG,
            WINDLASS_AGENT_SANDBOX="best-effort",
            WINDLASS_DATA_DIR=str(data),
            WINDLASS_QUEUES=SERVED,
            WINDLASS_FAKE_PROVIDERS_URL=fake.url,
        ) as windlass,
        a_prometheus(directory, start(windlass)) as prometheus,
    ):
        windlass.wait_until_healthy()
        yield Watched(windlass.client, prometheus)


def start(windlass: Windlass) -> list[str]:
    """Every service, each with a port for its metrics."""
    ports: dict[str, int] = {}
    for service in ("api", "dispatcher", "actors", "janitor", "orchestrator"):
        while (port := free_port()) in ports.values():
            pass
        ports[service] = port
        windlass.start(service, WINDLASS_METRICS_PORT=str(port))
    return [f"127.0.0.1:{port}" for port in ports.values()]


def test_a_queue_that_nobody_serves_wakes_somebody_and_a_forgotten_pause_does_not(watched: Watched) -> None:
    watched.client.submit(provider="nobody")
    watched.client.submit(provider="resting")
    watched.client.change_provider("resting", paused=True)

    def fires(severity: str) -> dict[str, dict[str, dict[str, str]]]:
        alerts = [each for each in watched.prometheus.firing() if each["labels"]["severity"] == severity]
        return {each["labels"]["alertname"]: each for each in alerts}

    wait_until("one page", lambda: fires("page").keys() == {"WindlassNoWorker"}, every=0.2)
    page = fires("page")["WindlassNoWorker"]
    assert page["labels"]["queue"] == "probe.nobody"
    assert (
        page["annotations"]["description"] == "Tasks that could start in queue probe.nobody, which no worker serves: 1."
    )
    ticket = wait_until("a ticket", lambda: fires("ticket").get("WindlassPauseForgotten"), every=0.2)
    assert ticket["annotations"]["summary"] == "resting is still paused by hand"


def test_every_panel_shows_something(watched: Watched) -> None:
    """Each expression as Grafana sends it; work is given until all have shown a number."""
    missing = list(panel_expressions())

    def show() -> bool:
        watched.give_work()
        missing[:] = [each for each in missing if not watched.prometheus.shows(filled(each))]
        return not missing

    try:
        wait_until("every panel shows something", show, seconds=150)
    finally:
        assert not [(each.where, filled(each)) for each in missing]


def filled(expression: Expression) -> str:
    dashboard, _, panel = expression.where.partition(": ")
    text = expression.filled(RATE_WINDOW, **(QUEUE if dashboard == "queue" else {}))
    is_rare = panel.rpartition(" ")[0] in RARE or (dashboard == "queue" and panel.startswith(("Errors", "Whose fault")))
    return text if is_rare else text.partition(" or on () ")[0]

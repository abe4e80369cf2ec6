"""A Prometheus of a test's own, with the committed rules at a pace that a test can wait for."""

import math
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.monitoring.programs import program
from tests.monitoring.written import MONITORING
from tests.support.installation import leash
from tests.support.waiting import wait_until
from windlass.services.laptop.ports import free_port

SCRAPE = "500ms"
EVALUATE = "1s"


class Prometheus:
    """Asked over HTTP, as Grafana asks."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=30, trust_env=False)

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series that it gives now."""
        response = self.http.post("/api/v1/query", data={"query": expression})
        assert response.status_code == 200, f"{expression}: {response.text}"
        found = response.json()["data"]
        assert found["resultType"] == "vector", expression
        return list(found["result"])

    def shows(self, expression: str) -> bool:
        """Whether a panel would draw something: a number, and not only the share of nothing."""
        return any(not math.isnan(float(series["value"][1])) for series in self.query(expression))

    def firing(self) -> list[dict[str, Any]]:
        alerts = self.http.get("/api/v1/alerts").raise_for_status().json()["data"]["alerts"]
        return [alert for alert in alerts if alert["state"] == "firing"]

    def is_ready(self) -> bool:
        try:
            return self.http.get("/-/ready").status_code == 200
        except httpx.TransportError:
            return False


@contextmanager
def a_prometheus(directory: Path, targets: Sequence[str]) -> Iterator[Prometheus]:
    """Reads these targets until the block is left, however that is."""
    port = free_port()
    config = directory / "prometheus.yml"
    config.write_text(yaml.safe_dump(configuration(directory, targets)))
    with (directory / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                *leash(),
                program("prometheus"),
                f"--config.file={config}",
                f"--storage.tsdb.path={directory / 'prometheus'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
    prometheus = Prometheus(f"http://127.0.0.1:{port}")
    try:
        wait_until("Prometheus", lambda: prometheus.is_ready() or process.poll() is not None, seconds=90)
        assert process.poll() is None, (directory / "prometheus.log").read_text()
        yield prometheus
    finally:
        prometheus.http.close()
        process.send_signal(signal.SIGKILL)
        process.wait()


def configuration(directory: Path, targets: Sequence[str]) -> Mapping[str, Any]:
    """As in compose, with the same job, but faster; and the rules without their patience."""
    for path in (MONITORING / "rules").glob("*.yaml"):
        rules = yaml.safe_load(path.read_text())
        for group in rules["groups"]:
            group["interval"] = EVALUATE
            for rule in group["rules"]:
                if "alert" in rule:
                    rule["for"] = EVALUATE
        (directory / path.name).write_text(yaml.safe_dump(rules))
    (job, *_) = yaml.safe_load((MONITORING / "prometheus.yml").read_text())["scrape_configs"]
    return {
        "global": {"scrape_interval": SCRAPE, "scrape_timeout": SCRAPE, "evaluation_interval": EVALUATE},
        "rule_files": [str(directory / path.name) for path in (MONITORING / "rules").glob("*.yaml")],
        "scrape_configs": [{**job, "static_configs": [{"targets": list(targets)}]}],
    }

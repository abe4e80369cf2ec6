"""Every alert is whole, has a page that helps and a test, and Prometheus' own tool agrees with all of it."""

import re
import subprocess
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
import yaml

from deploy.monitoring.generate.output import files
from tests.monitoring.programs import program
from tests.monitoring.written import MONITORING, PROJECT, alerts, rules
from windlass.shared.filters import FILTERS

TESTS = sorted((MONITORING / "tests").glob("*.yaml"))
WINDOWS = ("5m", "30m", "1h", "2h", "6h", "1d", "3d")
GENERATED = files()
OBJECTIVES = ("api_errors", "late_starts", "failures")


def names() -> list[str]:
    return sorted({alert["alert"] for alert in alerts()})


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.name)
def test_what_is_committed_is_what_is_generated(path: Path) -> None:
    assert path.read_text() == GENERATED[path], "`make fmt` writes it"


def test_nothing_else_lies_where_files_are_generated() -> None:
    for folder in ("rules", "dashboards"):
        assert set((MONITORING / folder).iterdir()) <= GENERATED.keys()


def test_every_objective_is_recorded_over_every_window() -> None:
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    assert {f"slo:windlass_{name}:ratio_rate{window}" for name in OBJECTIVES for window in WINDOWS} <= recorded


def test_every_alert_says_how_urgent_it_is_and_what_it_is_about() -> None:
    for alert in alerts():
        assert alert["labels"]["severity"] in {"page", "ticket"}
        annotations = alert["annotations"]
        assert annotations.keys() == {"summary", "description", "runbook_url", "page_url"}
        assert re.search(r"{{ \$(labels|value)", annotations["description"]), alert["alert"]


def test_every_alert_leads_into_a_view_of_the_page_with_its_filter() -> None:
    views = re.findall(r'href: "(.+?)"', (PROJECT / "web" / "src" / "views.ts").read_text())
    for alert in alerts():
        place, url = alert["annotations"]["page_url"].split(" }}", 1)
        assert place == "{{ $externalLabels.windlass_url"
        path, query = (urlsplit(url).path, parse_qsl(urlsplit(url).query, keep_blank_values=True))
        assert path.split("/{{")[0] in views, alert["alert"]
        assert {name for name, _ in query} <= FILTERS.keys() | {"state"}, alert["alert"]


@pytest.mark.parametrize("name", names())
def test_every_alert_has_a_page(name: str) -> None:
    for alert in alerts():
        if alert["alert"] == name:
            page = PROJECT / alert["annotations"]["runbook_url"]
            assert page.name == f"{name}.md"
            assert page.read_text().startswith(f"# {name}\n")


@pytest.mark.parametrize("name", names())
def test_every_alert_was_seen_to_fire_and_to_be_silent(name: str) -> None:
    """In a unit test of promtool: at each urgency that it has, and once at which nothing is expected."""
    asked = [
        each
        for path in TESTS
        for case in yaml.safe_load(path.read_text())["tests"]
        for each in case["promql_expr_test"]
        if f'"{name}"' in each["expr"]
    ]
    expected = " ".join(sample["labels"] for each in asked for sample in each.get("exp_samples", []))
    severities = {alert["labels"]["severity"] for alert in alerts() if alert["alert"] == name}
    assert {severity for severity in severities if f'severity="{severity}"' in expected} == severities
    assert any(not each.get("exp_samples") for each in asked)


def test_prometheus_accepts_the_rules() -> None:
    run(program("promtool"), "check", "rules", "--lint-fatal", *map(str, sorted((MONITORING / "rules").glob("*.yaml"))))


def test_prometheus_accepts_its_configuration(tmp_path: Path) -> None:
    text = (MONITORING / "prometheus.yml").read_text()
    assert "/etc/prometheus/rules/" in text
    config = tmp_path / "prometheus.yml"
    config.write_text(text.replace("/etc/prometheus/rules/", f"{MONITORING}/rules/"))
    run(program("promtool"), "check", "config", str(config))


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_alerts_fire_when_they_should_and_only_then(path: Path) -> None:
    run(program("promtool"), "test", "rules", str(path))


def run(*command: str) -> None:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr

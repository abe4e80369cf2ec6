"""`deploy/compose.yaml`: everything on one machine, and the two servers alone for `make up`."""

import re
import stat
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.manifests import DEPLOY
from windlass.services.cli.main import PROCESSES
from windlass.shared.settings import DEFAULT_PROVIDERS, Settings

SETTINGS = {f"WINDLASS_{name.upper()}" for name in Settings.model_fields}
SERVERS = {"postgres", "rabbitmq"}
WATCHERS = {"prometheus", "grafana"}


@cache
def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    return found


def ours() -> dict[str, Any]:
    return {name: service for name, service in services().items() if name not in SERVERS | WATCHERS}


def test_the_servers_need_nothing_else_when_make_up_starts_them() -> None:
    for name in SERVERS:
        assert "depends_on" not in services()[name]
        assert "build" not in services()[name]


@pytest.mark.parametrize("name", [*ours(), *sorted(WATCHERS)])
def test_ours_and_the_watchers_run_as_they_do_in_a_cluster(name: str) -> None:
    service = services()[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "/tmp" in service["tmpfs"]


@pytest.mark.parametrize("name", services())
def test_no_tmpfs_wants_an_owner_and_nobody_runs_programs_from_one(name: str) -> None:
    """Podman refuses the owner, and Docker's are noexec: what needs either has a volume."""
    assert services()[name].get("tmpfs", ["/tmp"]) == ["/tmp"]


def test_grafana_asks_nobody_on_the_internet() -> None:
    environment = services()["grafana"]["environment"]
    assert {name for name, value in environment.items() if value == "true"} == {
        "GF_PLUGINS_PREINSTALL_DISABLED",
        "GF_SECURITY_DISABLE_GRAVATAR",
    }
    assert {name for name in environment if name.startswith(("GF_ANALYTICS_", "GF_NEWS_"))} == {
        "GF_ANALYTICS_REPORTING_ENABLED",
        "GF_ANALYTICS_CHECK_FOR_UPDATES",
        "GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES",
        "GF_ANALYTICS_FEEDBACK_LINKS_ENABLED",
        "GF_NEWS_NEWS_FEED_ENABLED",
    }


@pytest.mark.parametrize("name", ours())
def test_each_runs_a_process_that_there_is(name: str) -> None:
    service = ours()[name]
    if name == "providers":
        assert service["entrypoint"] == ["python", "-m", "windlass.services.fake_providers"]
    else:
        process, *options = service["command"]
        assert process in PROCESSES
        assert options == (["--register"] if process == "migrate" else []), "an actor that nobody runs yet takes tasks"


@pytest.mark.parametrize("name", ours())
def test_every_variable_is_a_setting_or_a_provider_s_key(name: str) -> None:
    keys = {each.get(field) for each in DEFAULT_PROVIDERS.values() for field in ("api_key_env", "callback_key_env")}
    assert ours()[name]["environment"].keys() <= SETTINGS | keys


def test_every_queue_is_served_once() -> None:
    served = [
        queue
        for service in ours().values()
        for queue in service["environment"].get("WINDLASS_QUEUES", "").split(",")
        if queue
    ]
    assert sorted(served) == sorted(Settings(config=DEPLOY / "compose.toml").all_queues())


@pytest.mark.parametrize("name", ["api", "dispatcher", "actors", "agents", "janitor", "orchestrator"])
def test_each_answers_prometheus_inside_and_not_outside(name: str) -> None:
    service = ours()[name]
    assert service["environment"]["WINDLASS_METRICS_PORT"] == 9100
    assert not any("9100" in port for port in service.get("ports", []))


def test_agents_are_apart_and_have_no_provider_s_key() -> None:
    assert not [name for name in ours()["agents"]["environment"] if not name.startswith("WINDLASS_")]


def test_agents_need_a_sandbox_unless_somebody_decides_otherwise() -> None:
    assert ours()["agents"]["environment"]["WINDLASS_AGENT_SANDBOX"] == "${WINDLASS_AGENT_SANDBOX:-required}"


@pytest.mark.parametrize("name", ["actors", "agents"])
def test_workers_have_the_time_that_they_were_promised(name: str) -> None:
    service = ours()[name]
    needed = float(service["environment"]["WINDLASS_DRAIN_SECONDS"]) + 3 * Settings().stop_grace_seconds
    assert int(service["stop_grace_period"].removesuffix("s")) >= needed + 5


def test_all_wait_for_the_schema_and_it_for_postgres() -> None:
    for name, service in ours().items():
        expected = "postgres" if name == "migrate" else "migrate"
        condition = "service_healthy" if name == "migrate" else "service_completed_successfully"
        assert service["depends_on"] == {expected: {"condition": condition}}


def test_nothing_is_published_beyond_this_machine() -> None:
    for service in services().values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


@pytest.mark.parametrize("name", sorted(WATCHERS))
def test_the_watchers_are_pinned_and_run_as_ordinary_users(name: str) -> None:
    assert re.fullmatch(r"[a-z]+/[a-z]+:v?\d+\.\d+\.\d+(@sha256:[0-9a-f]{64})?", services()[name]["image"])
    assert int(services()[name]["user"].partition(":")[0]) > 0


@pytest.mark.parametrize("name", sorted(WATCHERS))
def test_what_the_watchers_are_given_is_there(name: str) -> None:
    """A path that does not exist would be made by the engine, as an empty directory of root's."""
    for volume in services()[name]["volumes"]:
        source, _, mode = volume.partition(":")
        if source.startswith("."):
            assert (DEPLOY / source).exists()
            assert mode.endswith(":ro")


def test_prometheus_reads_every_process_that_shows_metrics() -> None:
    (job, _) = yaml.safe_load((DEPLOY / "monitoring" / "prometheus.yml").read_text())["scrape_configs"]
    (group,) = job["static_configs"]
    read = {target.partition(":")[0] for target in group["targets"]}
    assert read == ours().keys() - {"migrate", "providers"}


def test_a_password_that_an_older_version_did_not_make_is_added(tmp_path: Path) -> None:
    script = tmp_path / "env.sh"
    script.write_bytes((DEPLOY / "env.sh").read_bytes())
    (tmp_path / ".env").write_text("WINDLASS_POSTGRES_PASSWORD=kept\nWINDLASS_API_KEY=kept-too\n")
    subprocess.run(["sh", script], check=True)
    made = dict(line.split("=", 1) for line in (tmp_path / ".env").read_text().splitlines())
    assert made["WINDLASS_POSTGRES_PASSWORD"] == "kept"
    assert made["WINDLASS_API_KEY"] == "kept-too"
    assert len(made["WINDLASS_GRAFANA_PASSWORD"]) >= 32


def test_passwords_and_the_key_are_made_once_and_readable_by_their_owner_alone(tmp_path: Path) -> None:
    script = tmp_path / "env.sh"
    script.write_bytes((DEPLOY / "env.sh").read_bytes())
    said = [subprocess.run(["sh", script, "--show"], capture_output=True, text=True, check=True) for _ in range(2)]
    assert said[0].stdout == said[1].stdout
    made = dict(line.split("=", 1) for line in (tmp_path / ".env").read_text().splitlines())
    assert stat.S_IMODE((tmp_path / ".env").stat().st_mode) == 0o600
    assert f"key={Settings(api_key=made['WINDLASS_API_KEY']).api_key}\n" in said[0].stdout
    assert len(made["WINDLASS_POSTGRES_PASSWORD"]) >= 32
    wanted = set(re.findall(r"\$\{(WINDLASS_\w*(?:PASSWORD|API_KEY)):-\}", (DEPLOY / "compose.yaml").read_text()))
    assert wanted == made.keys()

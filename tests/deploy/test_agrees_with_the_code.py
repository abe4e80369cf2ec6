"""What the manifests say about Windlass is true: queues, settings, ports, probes, graces, connections."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from litestar import Litestar

from tests.deploy.manifests import (
    DEPLOY,
    OVERLAYS,
    OWN_IMAGE,
    PROJECT,
    Manifest,
    Pod,
    config_data,
    environment,
    of_kind,
    our_pod,
    our_pods,
    pods,
    pools,
)
from windlass.services.api.main import create_app
from windlass.services.api.media import uploads
from windlass.services.api.operators.cluster import DEADLINE_SECONDS
from windlass.services.cli.main import PROCESSES, build_parser
from windlass.services.laptop.servers.broker_node import CONFIGURATION
from windlass.shared.settings import DEFAULT_PROVIDERS, Settings

every_pod_of_ours = pytest.mark.parametrize("pod", our_pods(), ids=str)
every_overlay = pytest.mark.parametrize("overlay", OVERLAYS)

SERVICES = {"api", "dispatcher", "actors", "janitor", "orchestrator"}
SETTINGS = {f"WINDLASS_{name.upper()}" for name in Settings.model_fields}
ERLANG_ARGUMENTS = "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"
ELSEWHERE = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
KEYS = {provider.get(each) for provider in DEFAULT_PROVIDERS.values() for each in ("api_key_env", "callback_key_env")}


def settings_of(pod: Pod, tmp_path: Path) -> Settings:
    """As the pod's process reads them, with the file that is mounted there."""
    file = tmp_path / "windlass.toml"
    file.write_text(config_data(pod.overlay, "windlass-config")["windlass.toml"])
    found = environment(pod, pod.spec["containers"][0])
    values: dict[str, Any] = {
        name.removeprefix("WINDLASS_").lower(): value for name, value in found.items() if value and name in SETTINGS
    }
    return Settings(**{**values, "config": file})


# Queues


@every_overlay
def test_every_queue_has_its_pool_and_every_pool_its_queue(overlay: str, tmp_path: Path) -> None:
    queues = settings_of(our_pod(overlay, "api"), tmp_path).all_queues()
    served = [settings_of(pod, tmp_path).queues for pod in pools(overlay)]
    assert sorted(served) == sorted((queue,) for queue in queues)


@every_overlay
def test_every_pool_is_scaled_by_the_demand_for_its_own_queue(overlay: str, tmp_path: Path) -> None:
    scaled = of_kind(overlay, "ScaledObject")
    assert {each["spec"]["scaleTargetRef"]["name"] for each in scaled.values()} == {pod.name for pod in pools(overlay)}
    for pod in pools(overlay):
        (trigger,) = scaled[pod.name]["spec"]["triggers"]
        (queue,) = settings_of(pod, tmp_path).queues
        assert trigger["metadata"]["query"].endswith(f"FROM scale_demand WHERE queue = '{queue}'")


@every_overlay
def test_the_target_of_scaling_is_what_one_pod_does_at_once(overlay: str, tmp_path: Path) -> None:
    for pod in pools(overlay):
        (trigger,) = of_kind(overlay, "ScaledObject")[pod.name]["spec"]["triggers"]
        settings = settings_of(pod, tmp_path)
        assert int(trigger["metadata"]["targetQueryValue"]) == settings.actor_threads == settings.async_places
        assert trigger["metadata"]["activationTargetQueryValue"] == "0"


@every_overlay
def test_the_scaler_reads_as_a_role_that_is_made_for_it(overlay: str) -> None:
    (authentication,) = of_kind(overlay, "TriggerAuthentication").values()
    if overlay == "production":
        (cluster,) = of_kind(overlay, "Cluster").values()
        made = {role["name"]: role["connectionLimit"] for role in cluster["spec"]["managed"]["roles"]}
    else:
        script = config_data(overlay, "windlass-postgres-scripts")["scaler.sh"]
        made = {name: int(most) for name, most in re.findall(r"CREATE ROLE (\w+) LOGIN CONNECTION LIMIT (\d+)", script)}
    scaled = of_kind(overlay, "ScaledObject").values()
    for each in scaled:
        (trigger,) = each["spec"]["triggers"]
        assert trigger["authenticationRef"]["name"] == authentication["metadata"]["name"]
        assert made[trigger["metadata"]["userName"]] >= 2 * len(scaled)


# Settings


@every_pod_of_ours
def test_every_variable_is_a_setting_or_a_key(pod: Pod) -> None:
    for container in pod.containers:
        unknown = environment(pod, container).keys() - SETTINGS - KEYS
        assert not unknown


@every_pod_of_ours
def test_the_settings_of_every_pod_are_accepted_together(pod: Pod, tmp_path: Path) -> None:
    """A combination that cannot keep the promises is refused; one that is not here would be refused in the cluster."""
    if pod.name != "fake-providers":
        settings = settings_of(pod, tmp_path)
        assert (settings.data_dir, settings.sandbox_of("demo")) == (Path("/var/lib/windlass"), "required")


@every_overlay
def test_keys_of_providers_go_by_the_names_that_the_settings_know(overlay: str) -> None:
    for secret in of_kind(overlay, "ExternalSecret").values():
        if secret["metadata"]["name"].startswith(("windlass-keys-", "windlass-media")):
            assert {each["secretKey"] for each in secret["spec"]["data"]} <= KEYS | ELSEWHERE


@every_overlay
def test_every_secret_comes_from_somewhere(overlay: str) -> None:
    made = {each["spec"]["target"]["name"] for each in of_kind(overlay, "ExternalSecret").values()}
    made |= {f"{name}-app" for name in of_kind(overlay, "Cluster")}
    made |= {f"{name}-default-user" for name in of_kind(overlay, "RabbitmqCluster")}
    if overlay != "production":
        script = (PROJECT / "deploy/k8s/overlays/dev/secrets.sh").read_text()
        made |= set(re.findall(r"^make ([\w-]+)", script, re.MULTILINE))
    assert {name for pod in pods(overlay) for name in required_secrets(pod)} <= made


def required_secrets(pod: Pod) -> set[str]:
    references: list[Manifest] = []
    for container in pod.containers:
        references += [each["secretRef"] for each in container.get("envFrom", []) if "secretRef" in each]
        references += [
            each["valueFrom"]["secretKeyRef"]
            for each in container.get("env", [])
            if "secretKeyRef" in each.get("valueFrom", {})
        ]
    return {each["name"] for each in references if not each.get("optional")}


# Processes, ports and probes


@every_pod_of_ours
def test_every_container_runs_a_command_that_there_is(pod: Pod) -> None:
    for container in pod.containers:
        if "command" in container:
            assert container["command"] == ["python", "-m", "windlass.services.fake_providers"]
        else:
            assert build_parser().parse_args(container["args"]).command in PROCESSES


@every_overlay
def test_the_api_listens_where_its_probes_and_its_service_look(overlay: str, tmp_path: Path) -> None:
    pod = our_pod(overlay, "api")
    (container,) = pod.spec["containers"]
    settings = settings_of(pod, tmp_path)
    (port, _) = container["ports"]
    assert port == {"name": "http", "containerPort": settings.port}
    assert settings.host == "0.0.0.0"
    paths = {container[probe]["httpGet"]["path"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert paths <= served_paths(create_app(Settings(data_dir=tmp_path)))
    assert container["readinessProbe"]["httpGet"]["path"] == "/health/ready"
    assert container["livenessProbe"]["httpGet"]["path"] == "/health/live", "which looks at nothing else"


def served_paths(app: Litestar) -> set[str]:
    return {route.path for route in app.routes}


@every_pod_of_ours
def test_no_port_is_named_that_nobody_serves(pod: Pod) -> None:
    ports = [port["containerPort"] for container in pod.containers for port in container.get("ports", [])]
    answers_prometheus = pod.labels.get("app.kubernetes.io/component") in SERVICES
    assert ports == {"api": [8800], "fake-providers": [8810]}.get(pod.name, []) + [9100] * answers_prometheus


@every_overlay
def test_every_process_answers_prometheus_where_it_looks(overlay: str, tmp_path: Path) -> None:
    """By name: what the monitor and the network policy mean is the port that the process listens on."""
    policy = of_kind(overlay, "NetworkPolicy")["to-the-metrics"]["spec"]
    assert [each["port"] for each in policy["ingress"][0]["ports"]] == ["metrics"]
    assert list(policy["ingress"][0]["from"]) == [
        {"namespaceSelector": {"matchLabels": {"windlass.dev/monitoring": "true"}}}
    ]
    components = set(policy["podSelector"]["matchExpressions"][0]["values"])
    found = {pod.labels.get("app.kubernetes.io/component"): pod for pod in pods(overlay) if pod.is_ours}
    assert components == SERVICES <= found.keys()
    for pod in (*pools(overlay), *(found[component] for component in components)):
        settings = settings_of(pod, tmp_path)
        assert {"name": "metrics", "containerPort": settings.metrics_port} in pod.spec["containers"][0]["ports"]
        assert (settings.metrics_host or settings.host) == "0.0.0.0"


def test_the_monitor_selects_those_who_answer() -> None:
    spec = of_kind("production", "PodMonitor")["windlass"]["spec"]
    policy = of_kind("production", "NetworkPolicy")["to-the-metrics"]["spec"]
    assert spec["selector"] == policy["podSelector"]
    (endpoint,) = spec["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["path"]) == ("metrics", "/metrics")
    assert float(endpoint["scrapeTimeout"].removesuffix("s")) > 2 * DEADLINE_SECONDS, "Postgres may not answer"


@every_pod_of_ours
def test_those_without_a_port_are_felt_by_their_pulse(pod: Pod, tmp_path: Path) -> None:
    """Never by RabbitMQ: restarting a worker does not bring it back."""
    (container,) = pod.spec["containers"]
    if pod.labels.get("app.kubernetes.io/component") in SERVICES - {"api"}:
        file = str(settings_of(pod, tmp_path).pulse_file)
        assert container["startupProbe"]["exec"]["command"] == ["windlass", "alive", file]
        assert container["livenessProbe"]["exec"]["command"] == ["windlass", "alive", file]
        assert container["readinessProbe"]["exec"]["command"] == ["windlass", "alive", "--ready", file]
        assert file.startswith("/tmp/")


@every_overlay
def test_a_stuck_worker_is_its_guardian_s_to_replace_before_it_is_the_kubelet_s(overlay: str, tmp_path: Path) -> None:
    for pod in pools(overlay):
        settings = settings_of(pod, tmp_path)
        probe = pod.spec["containers"][0]["livenessProbe"]
        patience = probe["periodSeconds"] * (probe["failureThreshold"] - 1)
        assert patience > settings.pulse_seconds + settings.lease_seconds + settings.start_seconds


# Draining


@every_overlay
def test_a_worker_has_the_time_that_it_was_promised(overlay: str, tmp_path: Path) -> None:
    for pod in pools(overlay):
        settings = settings_of(pod, tmp_path)
        # What the guardian gives its worker: see `_begin_to_drain` in services/actors/guardian.py.
        needed = settings.drain_seconds + 3 * settings.stop_grace_seconds
        assert pod.spec["terminationGracePeriodSeconds"] >= needed + 10


@every_overlay
def test_an_agent_and_a_summary_may_end_what_they_have_begun(overlay: str, tmp_path: Path) -> None:
    """A picture that is being drawn is asked for again by the next worker; what these do would begin anew."""
    for name, actor in (("actors-agent-local", "agent"), ("actors-summarize-openrouter", "summarize")):
        settings = settings_of(our_pod(overlay, name), tmp_path)
        assert settings.drain_seconds > settings.actors[actor].timeout_seconds


def test_the_operators_book_has_the_drain_of_every_pool() -> None:
    table = (PROJECT / "docs" / "operating.md").read_text().partition("\n## Draining\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([a-z, ]+) \| ([\d,]+) s \|", table, re.MULTILINE)
    told = {actor: int(seconds.replace(",", "")) for actors, seconds in rows for actor in actors.split(", ")}
    specs = [yaml.safe_load(path.read_text())["spec"] for path in (DEPLOY / "k8s/base/pools").glob("*/pool.yaml")]
    assert told == {each["queue"].partition(".")[0]: each["drainSeconds"] for each in specs}


@every_overlay
def test_the_api_closes_its_streams_within_its_grace(overlay: str) -> None:
    pod = our_pod(overlay, "api")
    command, seconds = pod.spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    assert command == "sleep"
    assert int(seconds) >= 5, "others have to learn that it leaves"
    assert pod.spec["terminationGracePeriodSeconds"] > int(seconds) + 10


# The rest


@every_overlay
def test_the_migration_and_the_image_are_of_this_version(overlay: str) -> None:
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    (job,) = [pod for pod in pods(overlay) if pod.owner["kind"] == "Job"]
    (tag,) = {container["image"].rpartition(":")[2] for container in job.containers}
    assert job.name == f"migrate-{tag.replace('.', '-')}"
    for pod in pods(overlay):
        if pod.is_ours:
            (image,) = {container["image"] for container in pod.containers}
            own = image.startswith(f"{OWN_IMAGE}:")
            assert re.fullmatch(rf"{re.escape(version)}-\d+" if own else re.escape(version), image.rpartition(":")[2])


def test_an_ingress_keeps_streams_open_and_lets_bodies_in() -> None:
    ingress = of_kind("production", "Ingress")["api"]
    annotations = {name.partition("/")[2]: value for name, value in ingress["metadata"]["annotations"].items()}
    assert annotations["proxy-buffering"] == "off"
    assert int(annotations["proxy-read-timeout"]) > 4 * Settings().stream_ping_seconds
    largest = max(Settings().largest_body_bytes, uploads.LARGEST_BYTES)
    assert int(annotations["proxy-body-size"].removesuffix("m")) * 10**6 > largest
    (rule,) = ingress["spec"]["rules"]
    (path,) = rule["http"]["paths"]
    service = of_kind("production", "Service")[path["backend"]["service"]["name"]]
    assert path["backend"]["service"]["port"]["name"] in {port["name"] for port in service["spec"]["ports"]}


def test_the_address_that_clients_are_given_is_the_ingress_s() -> None:
    (rule,) = of_kind("production", "Ingress")["api"]["spec"]["rules"]
    assert config_data("production", "windlass-settings")["WINDLASS_PUBLIC_URL"] == f"https://{rule['host']}"


def test_every_rabbitmq_notices_a_frozen_worker_as_soon_as_that_of_make_up() -> None:
    (seconds,) = re.findall(r"^heartbeat = (\d+)$", CONFIGURATION, re.MULTILINE)
    (cluster,) = of_kind("production", "RabbitmqCluster").values()
    assert f"heartbeat = {seconds}\n" in cluster["spec"]["rabbitmq"]["additionalConfig"]
    (container,) = our_pod("dev", "windlass-rabbitmq").spec["containers"]
    arguments = {each["name"]: each.get("value") for each in container["env"]}[ERLANG_ARGUMENTS]
    assert arguments == f"-rabbit heartbeat {seconds}"
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert compose["services"]["rabbitmq"]["environment"][ERLANG_ARGUMENTS] == arguments

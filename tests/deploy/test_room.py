"""There is room for what the code may take: memory for agents, and connections to Postgres for everybody."""

import re

import pytest
import yaml

from tests.deploy.manifests import DEPLOY, OVERLAYS, PROJECT, as_bytes, of_kind, our_pod, pods
from windlass.services.laptop.servers.cluster import CONFIGURATION
from windlass.shared.toml_tables import AgentLimits

COMMANDS = {"first_key.py", "after_restore.py"}
"""Run once, by hand or before the service itself."""

every_overlay = pytest.mark.parametrize("overlay", OVERLAYS)


@every_overlay
def test_an_agent_s_pod_has_room_for_what_an_agent_may_take(overlay: str) -> None:
    limits = our_pod(overlay, "actors-agent-local").spec["containers"][0]["resources"]["limits"]
    allowed = AgentLimits()
    assert as_bytes(limits["memory"]) >= (allowed.memory_mb or 0) * 2**20 + 512 * 2**20
    assert as_bytes(limits["ephemeral-storage"]) > (allowed.file_mb or 0) * 2**20


@pytest.mark.parametrize("overlay", ["dev", "own-actors"])
def test_a_node_of_two_cores_and_8_gib_has_room_for_all_of_it_at_its_largest(overlay: str) -> None:
    """As docs/operating.md promises: what the node's own pods take is left out of it."""
    most = {name: each["spec"]["maxReplicaCount"] for name, each in of_kind(overlay, "ScaledObject").items()}
    for each in of_kind(overlay, "HorizontalPodAutoscaler").values():
        most[each["spec"]["scaleTargetRef"]["name"]] = each["spec"]["maxReplicas"]
    cpu = memory = 0
    for pod in (each for each in pods(overlay) if each.owner["kind"] != "Job"):
        number = most.get(pod.name, 1)
        requests = pod.spec["containers"][0]["resources"]["requests"]
        cpu += number * int(requests["cpu"].removesuffix("m"))
        memory += number * as_bytes(requests["memory"])
    assert cpu <= 1450
    assert memory <= 7 * 2**30


def connections_of(service: str) -> int:
    """What its code opens: the sizes of its pools that live long, and one for each listener."""
    sources = [path.read_text() for path in (PROJECT / "services" / service).rglob("*.py") if path.name not in COMMANDS]
    sizes = [
        int(size) for text in sources for size in re.findall(r"open_(?:reading_|feature_)?pool\([^)]*most=(\d+)", text)
    ]
    if service == "actors":
        sizes = [max(sizes)]  # the others are opened and closed again as a worker comes and goes
    return sum(sizes) + sum(text.count("db.Listener(") for text in sources)


def test_the_connections_of_each_process_are_those_of_the_design() -> None:
    assert {each: connections_of(each) for each in ("api", "dispatcher", "janitor", "orchestrator", "actors")} == {
        "api": 13,
        "dispatcher": 4,
        "janitor": 4,
        "orchestrator": 6,
        "actors": 3,
    }


@every_overlay
def test_postgres_has_connections_for_all_of_them(overlay: str) -> None:
    """At their largest, in the middle of a rollout, with every pod that is leaving still there."""
    (scaler,) = of_kind(overlay, "HorizontalPodAutoscaler").values()
    deployments, scaled = of_kind(overlay, "Deployment"), of_kind(overlay, "ScaledObject")
    most = {"api": 2 * scaler["spec"]["maxReplicas"]}
    most |= {name: 2 * deployments[name]["spec"]["replicas"] for name in ("dispatcher", "janitor", "orchestrator")}
    most["actors"] = sum(2 * each["spec"]["maxReplicaCount"] for each in scaled.values())
    needed = sum(number * connections_of(service) for service, number in most.items())
    needed += 2 * len(scaled)  # KEDA's own
    assert needed < 0.95 * max_connections(overlay)


def test_every_postgres_is_swept_as_often_as_that_of_make_up() -> None:
    (naptime,) = re.findall(r"^autovacuum_naptime = '(.*)'$", CONFIGURATION, re.MULTILINE)
    assert parameter_of("dev", "autovacuum_naptime") == naptime
    assert parameter_of("production", "autovacuum_naptime") == naptime
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert f"autovacuum_naptime={naptime}" in compose["services"]["postgres"]["command"]


def max_connections(overlay: str) -> int:
    return int(parameter_of(overlay, "max_connections"))


def parameter_of(overlay: str, name: str) -> str:
    """Of its Postgres."""
    if overlay == "production":
        (cluster,) = of_kind(overlay, "Cluster").values()
        return str(cluster["spec"]["postgresql"]["parameters"][name])
    arguments = our_pod(overlay, "windlass-postgres").spec["containers"][0]["args"]
    (value,) = [each.partition("=")[2] for each in arguments if each.startswith(f"{name}=")]
    return str(value)

"""Who speaks to whom, and who knows which secret."""

import ipaddress
import re
import subprocess
from pathlib import Path

import pytest

from tests.deploy.manifests import (
    DEPLOY,
    OVERLAYS,
    Manifest,
    Pod,
    all_pods,
    base_name,
    is_a_dashboard,
    of_kind,
    pods,
    pools,
    rendered,
)

every_pod = pytest.mark.parametrize("pod", all_pods(), ids=str)
every_overlay = pytest.mark.parametrize("overlay", OVERLAYS)

METADATA_SERVICE = "169.254.169.254"

KUBECTL = """#!/bin/sh
echo "$*" >>"$CALLS"
case "$*" in
    *"get secret "*) grep -q "create secret generic ${5} " "$CALLS" ;;
esac
"""
"""A cluster that has the Secrets that were made in it."""


# Who speaks to whom


@every_overlay
def test_nobody_speaks_to_anybody_unless_it_is_written_down(overlay: str) -> None:
    deny = of_kind(overlay, "NetworkPolicy")["nobody"]["spec"]
    assert deny == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


@every_overlay
def test_workers_reach_the_internet_and_nothing_private(overlay: str) -> None:
    (rule,) = of_kind(overlay, "NetworkPolicy")["to-the-internet"]["spec"]["egress"]
    blocks = [each["ipBlock"] for each in rule["to"]]
    for address in ("10.1.2.3", "172.20.0.1", "192.168.1.1", "127.0.0.1", METADATA_SERVICE, "100.64.0.1", "fd00::1",
                    "fe80::1", "::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::"):  # fmt: skip
        assert not reaches(blocks, address), address
    for address in ("1.1.1.1", "140.82.112.3", "2606:4700::1111"):
        assert reaches(blocks, address), address
    assert rule["ports"] == [{"protocol": "TCP", "port": 443}]


def reaches(blocks: list[Manifest], address: str) -> bool:
    ip = ipaddress.ip_address(address)

    def inside(network: str) -> bool:
        return ip in ipaddress.ip_network(network)

    return any(inside(block["cidr"]) and not any(map(inside, block["except"])) for block in blocks)


@every_overlay
def test_only_those_who_have_to_are_let_out(overlay: str) -> None:
    let_out = {pod.name for pod in pods(overlay) if pod.labels.get("windlass.dev/egress") == "internet"}
    providers = {"actors-media-leonardo", "actors-media-midjourney", "actors-summarize-openrouter"}
    assert let_out == providers | {"actors-webhook-http"} | (
        {"api"} if overlay == "production" else set()
    )  # it reads the bucket


@every_overlay
def test_only_an_ingress_reaches_the_api_and_the_api_never_the_broker(overlay: str) -> None:
    policies = of_kind(overlay, "NetworkPolicy")
    (rule,) = policies["to-the-api"]["spec"]["ingress"]
    assert rule["from"] == [{"namespaceSelector": {"matchLabels": {"windlass.dev/ingress": "true"}}}]
    (only,) = policies["to-the-broker"]["spec"]["podSelector"]["matchExpressions"]
    assert only["operator"] == "In"
    assert set(only["values"]) == {"dispatcher", "actors", "janitor"}


# Secrets


@every_overlay
def test_there_is_no_secret_in_the_tree(overlay: str) -> None:
    assert not of_kind(overlay, "Secret")
    text = "\n".join(str(each) for each in rendered(overlay))
    assert not re.search(r"wl_\w{6,}_\w{24,}|AKIA[0-9A-Z]{16}|sk-\w{20,}|://\w+:[^@{$\s]+@", text)


@every_pod
def test_what_is_secret_comes_from_a_secret(pod: Pod) -> None:
    for container in pod.containers:
        for each in container.get("env", []):
            if re.search(r"PASS|SECRET|_KEY$|DATABASE_URL|AMQP_URL", each["name"]):
                assert "secretKeyRef" in each.get("valueFrom", {}), each["name"]


@every_overlay
def test_each_pool_gets_the_keys_of_its_own_provider(overlay: str) -> None:
    for pod in pools(overlay):
        pool = pod.labels["windlass.dev/pool"]
        names = {each["secretRef"]["name"] for each in pod.spec["containers"][0]["envFrom"] if "secretRef" in each}
        media = {"windlass-media"} if overlay == "production" and pool.startswith("media-") else set()
        assert names == {f"windlass-keys-{pool}"} | media


@every_overlay
def test_what_is_configured_is_there(overlay: str) -> None:
    """A pod that names a ConfigMap or an account which is missing never starts."""
    maps = of_kind(overlay, "ConfigMap").keys()
    for pod in pods(overlay):
        named = {each["configMapRef"]["name"] for container in pod.containers for each in container.get("envFrom", [])
                 if "configMapRef" in each}  # fmt: skip
        named |= {each["configMap"]["name"] for each in pod.spec.get("volumes", []) if "configMap" in each}
        assert named <= maps


@every_overlay
def test_a_change_of_settings_restarts_whom_it_concerns(overlay: str) -> None:
    """Their names have a hash of what they hold, so the pods' templates change with it."""
    for config_map in of_kind(overlay, "ConfigMap").values():
        if is_a_dashboard(config_map):
            continue
        assert re.fullmatch(r"[a-z0-9]{10}", config_map["metadata"]["name"].rpartition("-")[2])
        assert base_name(config_map) in {"windlass-settings", "windlass-config", "windlass-postgres-scripts"}


def test_dev_s_secrets_are_made_once_and_its_namespace_as_it_is_applied_later(tmp_path: Path) -> None:
    """One that was made and not applied is warned of by every `kubectl apply` that follows."""
    (tmp_path / "kubectl").write_text(KUBECTL)
    (tmp_path / "kubectl").chmod(0o755)
    calls = tmp_path / "calls"
    script = DEPLOY / "k8s" / "overlays" / "dev" / "secrets.sh"
    for _ in range(2):
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "CALLS": str(calls)}
        subprocess.run(["/bin/sh", script], env=environment, check=True)
    said = calls.read_text()
    applied = {Path(each).resolve() for each in re.findall(r"^apply --filename (.*)$", said, re.MULTILINE)}
    assert applied == {DEPLOY / "k8s" / "base" / "namespace.yaml"}
    assert "create namespace" not in said
    made = re.findall(r"create secret generic (\S+)", said)
    assert sorted(made) == sorted(set(made))
    assert {"windlass-postgres-app", "windlass-rabbitmq-default-user", "windlass-scaler", "windlass-api-key"} == {*made}

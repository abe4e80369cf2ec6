"""The overlay with a pool for actors of somebody's own: like every other pool, and apart from all of them."""

import shutil
import subprocess
import tomllib
from pathlib import Path

import yaml

from tests.deploy.manifests import (
    DEPLOY,
    KUBERNETES,
    OVERLAYS,
    OWN_IMAGE,
    POD_MAKERS,
    config_data,
    image_name,
    of_kind,
    our_pod,
    pods,
    pools,
    read_all,
    rendered,
)
from tests.deploy.test_adding_a_queue import skeleton
from tests.deploy.test_rendering import kustomize

OVERLAY, POOL = "own-actors", "translate-translate"
NAME = f"actors-{POOL}"


def test_it_is_in_no_other_overlay() -> None:
    """Whoever has no plug-ins is asked for no image with them."""
    for overlay in OVERLAYS:
        named = [pod.name for pod in pods(overlay) if image_name(pod.spec["containers"][0]) == OWN_IMAGE]
        assert bool(named) == (overlay == OVERLAY)
    base = yaml.safe_load((KUBERNETES / "base" / "kustomization.yaml").read_text())
    assert not [each for each in base["resources"] if POOL in each]


def test_the_pool_has_all_that_the_others_have() -> None:
    for kind in ("Deployment", "ScaledObject", "PodDisruptionBudget"):
        ours, theirs = (skeleton(of_kind(OVERLAY, kind)[name]) for name in (NAME, "actors-summarize-openrouter"))
        assert ours == theirs, kind


def test_whoever_registers_has_the_image_and_the_settings_of_whoever_runs_them_and_nobody_else_the_image() -> None:
    with_it = {pod for pod in pods(OVERLAY) if image_name(pod.spec["containers"][0]) == OWN_IMAGE}
    assert {(pod.owner["kind"], pod.spec["containers"][0]["args"][0]) for pod in with_it} == {
        ("Deployment", "worker"),
        ("Job", "migrate"),
    }
    assert len({container["image"] for pod in with_it for container in pod.containers}) == 1
    assert len({str(volume) for pod in with_it for volume in pod.spec["volumes"] if volume["name"] == "config"}) == 1
    (job,) = [pod for pod in with_it if pod.owner["kind"] == "Job"]
    assert job.spec["containers"][0]["args"] == ["migrate", "--register"]


def test_the_rest_is_as_in_the_overlay_below() -> None:
    """A new image of the actors restarts their pool and nobody else: the others' pods differ in the settings alone."""

    def without_settings(overlay: str) -> dict[str, str]:
        (config,) = [name for name in of_kind(overlay, "ConfigMap") if name.startswith("windlass-config-")]
        return {
            str(each["metadata"]["name"]): str(each).replace(config, "")
            for each in rendered(overlay)
            if each["kind"] == "Deployment"
        }

    below, here = without_settings("dev"), without_settings(OVERLAY)
    assert here.keys() - below.keys() == {NAME}
    assert {name: here[name] for name in below} == below


def test_it_reaches_its_model_and_nothing_else() -> None:
    labels = our_pod(OVERLAY, NAME).labels
    assert labels["windlass.dev/egress"] == "none"
    added = of_kind(OVERLAY, "NetworkPolicy").keys() - of_kind("dev", "NetworkPolicy").keys()
    assert added == {"translate-to-its-model"}
    policy = of_kind(OVERLAY, "NetworkPolicy")["translate-to-its-model"]["spec"]
    selector = policy["podSelector"]["matchLabels"]
    assert [pod.name for pod in pods(OVERLAY) if selector.items() <= pod.labels.items()] == [NAME]
    assert policy["policyTypes"] == ["Egress"]
    (rule,) = policy["egress"]
    (target,) = rule["to"]
    assert target.keys() == {"namespaceSelector", "podSelector"}, "these pods there, and not each on its own"
    assert [each["port"] for each in rule["ports"]] == [8000]


def test_it_may_end_what_it_has_begun() -> None:
    environment = {each["name"]: each.get("value") for each in our_pod(OVERLAY, NAME).spec["containers"][0]["env"]}
    code = (DEPLOY / "examples" / "own_actors" / "our_actors.py").read_text()
    assert "timeout_seconds=120" in code
    assert float(environment["WINDLASS_DRAIN_SECONDS"]) > 120


def test_its_settings_are_those_of_the_example() -> None:
    example = tomllib.loads((DEPLOY / "examples" / "own_actors" / "windlass.toml").read_text())
    here = tomllib.loads(config_data(OVERLAY, "windlass-config")["windlass.toml"])
    below = tomllib.loads(config_data("dev", "windlass-config")["windlass.toml"])
    assert here == {**below, **example}
    (queue,) = [f"{actor}.{name}" for name, table in example["providers"].items() for actor in table["actors"]]
    assert queue.replace(".", "-") in {pod.labels["windlass.dev/pool"] for pod in pools(OVERLAY)}


def test_compose_and_the_cluster_run_the_same_image() -> None:
    services = yaml.safe_load((DEPLOY / "examples" / "own_actors" / "compose.yaml").read_text())["services"]
    image = our_pod(OVERLAY, NAME).spec["containers"][0]["image"]
    assert {services["register"]["image"], services["own-actors"]["image"], image} == {image}
    first = Path(DEPLOY / "examples" / "own_actors" / "Dockerfile").read_text().splitlines()[0]
    assert f"--tag {image} deploy/examples/own_actors" in first


def test_it_stands_on_the_production_overlay_as_well(tmp_path: Path) -> None:
    """As its first lines say: copied, with another overlay below it, and without the last two patches."""
    command = kustomize()
    sources = shutil.copytree(KUBERNETES, tmp_path / "k8s")
    file = sources / "overlays" / OVERLAY / "kustomization.yaml"
    kustomization = yaml.safe_load(file.read_text())
    kustomization["resources"][0] = "../production"
    *kustomization["patches"], postgres, node = kustomization["patches"]
    assert [each["target"]["kind"] for each in (postgres, node)] == ["ScaledObject", "Deployment"]
    file.write_text(yaml.safe_dump(kustomization))
    made = subprocess.run([*command, str(file.parent)], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    objects = {(each["kind"], each["metadata"]["name"]): each for each in read_all(made.stdout)}
    image = our_pod(OVERLAY, NAME).spec["containers"][0]["image"]
    with_it = {
        name
        for (kind, name), each in objects.items()
        if kind in POD_MAKERS and each["spec"]["template"]["spec"]["containers"][0]["image"] == image
    }
    assert with_it == {NAME, *of_kind(OVERLAY, "Job")}
    (trigger,) = objects["ScaledObject", NAME]["spec"]["triggers"]
    assert trigger["metadata"]["sslmode"] == "require"

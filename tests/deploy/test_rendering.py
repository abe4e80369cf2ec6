"""What is committed as rendered is what kustomize makes of the sources today."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.deploy.manifests import KUBERNETES, OVERLAYS, is_a_dashboard, of_kind, read_all, rendered

OLDEST = (5, 4)


def kustomize() -> list[str]:
    """The command that renders here; skips where there is none that is recent enough."""
    for command in (["kubectl", "kustomize"], ["kustomize", "build"]):
        version = ["kubectl", "version", "--client"] if command[0] == "kubectl" else ["kustomize", "version"]
        if shutil.which(command[0]):
            said = subprocess.run(version, capture_output=True, text=True, check=False).stdout
            match = re.search(r"(?:Kustomize Version: |^)v(\d+)\.(\d+)", said, re.MULTILINE)
            if match and tuple(map(int, match.groups())) >= OLDEST:
                return command
    pytest.skip(f"rendering needs a kubectl or kustomize with kustomize {OLDEST[0]}.{OLDEST[1]} or newer")


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_rendering_again_gives_what_is_committed(overlay: str) -> None:
    command = [*kustomize(), str(KUBERNETES / "overlays" / overlay)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert made.stdout == (KUBERNETES / "rendered" / f"{overlay}.yaml").read_text(), "`make render` writes it"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_object_of_the_sources_is_in_what_was_rendered(overlay: str) -> None:
    """Also where nothing can be rendered: whoever adds or renames an object and forgets to render is told."""
    expected = named_in(KUBERNETES / "overlays" / overlay / "kustomization.yaml")
    found = {
        (each["kind"], each["metadata"]["name"])
        for each in rendered(overlay)
        if each["kind"] != "ConfigMap" or is_a_dashboard(each)
    }
    assert found == expected


def layers(overlay: str) -> list[Path]:
    """What it is made of: itself, the overlay that it stands on, if it does, and the base."""
    found = [KUBERNETES / "overlays" / overlay]
    while (
        first := found[-1] / yaml.safe_load((found[-1] / "kustomization.yaml").read_text())["resources"][0]
    ).is_dir():
        found.append(first.resolve())
    return found


def named_in(file: Path) -> set[tuple[str, str]]:
    kustomization = yaml.safe_load(file.read_text())
    found: set[tuple[str, str]] = set()
    for component in kustomization.get("components", []):
        found |= named_in(file.parent / component / "kustomization.yaml")
    for resource in kustomization["resources"]:
        path = file.parent / resource
        if path.is_file():
            found |= {(each["kind"], each["metadata"]["name"]) for each in read_all(path.read_text())}
        elif (path / "pool.yaml").exists():
            (pool,) = read_all((path / "pool.yaml").read_text())
            kinds = ("Deployment", "ScaledObject", "PodDisruptionBudget")
            found |= {(kind, f"actors-{pool['metadata']['name']}") for kind in kinds}
        else:
            found |= named_in(path / "kustomization.yaml")
    for patch in kustomization.get("patches", []):
        if patch.get("options", {}).get("allowNameChange"):
            kind, ((changed),) = patch["target"]["kind"], yaml.safe_load(patch["patch"])
            found = {each for each in found if each[0] != kind} | {(kind, changed["value"])}
    return found


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_what_a_pool_says_is_what_was_rendered(overlay: str) -> None:
    for file in (file for layer in layers(overlay) for file in layer.glob("pools/*/pool.yaml")):
        (pool,) = read_all(file.read_text())
        said, name = pool["spec"], f"actors-{pool['metadata']['name']}"
        deployment, scaled = of_kind(overlay, "Deployment")[name], of_kind(overlay, "ScaledObject")[name]
        template = deployment["spec"]["template"]
        environment = {each["name"]: each.get("value") for each in template["spec"]["containers"][0]["env"]}
        assert environment["WINDLASS_QUEUES"] == said["queue"]
        assert environment["WINDLASS_ACTOR_THREADS"] == str(said["threads"])
        assert environment["WINDLASS_DRAIN_SECONDS"] == str(said["drainSeconds"])
        assert template["spec"]["terminationGracePeriodSeconds"] == said["graceSeconds"]
        assert template["metadata"]["labels"]["windlass.dev/egress"] == said["egress"]
        if overlay == "production":
            assert scaled["spec"]["maxReplicaCount"] == said["mostPods"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_settings_and_files_are_those_of_the_sources(overlay: str) -> None:
    settings = dict(
        line.split("=", 1) for line in (KUBERNETES / "base" / "settings.env").read_text().splitlines() if line
    )
    for layer in layers(overlay)[::-1]:
        for generator in yaml.safe_load((layer / "kustomization.yaml").read_text())["configMapGenerator"]:
            settings |= dict(line.split("=", 1) for line in generator.get("literals", []))
    toml = next(path for layer in layers(overlay) if (path := layer / "windlass.toml").exists())
    held = {key: value for each in of_kind(overlay, "ConfigMap").values() for key, value in each["data"].items()}
    assert {**settings, "windlass.toml": toml.read_text()}.items() <= held.items()

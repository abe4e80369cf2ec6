"""docs/operating.md, "A queue of your own", followed to the letter."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.deploy.manifests import KUBERNETES, PROJECT, Manifest, read_all
from tests.deploy.schemas import POOL
from tests.deploy.test_rendering import kustomize
from tests.deploy.test_schemas import VERSIONS, Check, check
from windlass.shared.settings import Settings

NAMED_BLOCK = re.compile(r"^\*\*`([^`]+)`\*\*\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAME = "actors-media-atelier"


def blocks(page: str) -> dict[str, str]:
    return dict(NAMED_BLOCK.findall((PROJECT / "docs" / page).read_text()))


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> list[Manifest]:
    """What the overlay of somebody who has followed the page becomes."""
    command = kustomize()
    sources = tmp_path_factory.mktemp("deploy") / "k8s"
    shutil.copytree(KUBERNETES, sources)
    ours = shutil.copytree(sources / "overlays" / "production", sources / "overlays" / "ours")
    written = blocks("operating.md")
    added = yaml.safe_load(written.pop("kustomization.yaml"))
    kustomization = yaml.safe_load((ours / "kustomization.yaml").read_text())
    for field, entries in added.items():
        kustomization[field] += entries
    files = {**written, "kustomization.yaml": yaml.safe_dump(kustomization), **blocks("adding_a_provider.md")}
    for name, text in files.items():
        (ours / name).parent.mkdir(parents=True, exist_ok=True)
        (ours / name).write_text(text)
    made = subprocess.run([*command, str(ours)], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return read_all(made.stdout)


def one(objects: list[Manifest], kind: str, name: str = NAME) -> Manifest:
    (found,) = [each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def test_the_new_queue_has_all_that_the_others_have(objects: list[Manifest]) -> None:
    for kind in ("Deployment", "ScaledObject", "PodDisruptionBudget"):
        check(one(objects, kind), VERSIONS[-1])
        ours, theirs = (skeleton(one(objects, kind, name)) for name in (NAME, "actors-media-leonardo"))
        assert ours == theirs


def skeleton(value: object) -> object:
    """An object without its values: which fields it has, and where."""
    if isinstance(value, dict):
        return {key: skeleton(each) for key, each in value.items()}
    return [skeleton(each) for each in value] if isinstance(value, list) else type(value).__name__


def test_the_new_queue_is_served_and_scaled(objects: list[Manifest]) -> None:
    deployment, scaled = one(objects, "Deployment"), one(objects, "ScaledObject")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert {"name": "WINDLASS_QUEUES", "value": "media.atelier"} in container["env"]
    assert container["image"] == "registry.example.com/windlass:0.1.0"
    secrets = [each["secretRef"]["name"] for each in container["envFrom"] if "secretRef" in each]
    assert secrets == ["windlass-keys-media-atelier", "windlass-media"]
    assert scaled["spec"]["scaleTargetRef"]["name"] == NAME
    assert scaled["spec"]["maxReplicaCount"] == 3
    (trigger,) = scaled["spec"]["triggers"]
    assert "queue = 'media.atelier'" in trigger["metadata"]["query"]
    assert trigger["metadata"]["targetQueryValue"] == "4"


def test_the_others_know_of_the_new_provider(objects: list[Manifest], tmp_path: Path) -> None:
    (config,) = [each for each in objects if each["metadata"]["name"].startswith("windlass-config-")]
    (tmp_path / "windlass.toml").write_text(config["data"]["windlass.toml"])
    queues = Settings(config=tmp_path / "windlass.toml").all_queues()
    served = [
        each["value"]
        for deployment in objects
        if deployment["kind"] == "Deployment"
        for each in deployment["spec"]["template"]["spec"]["containers"][0].get("env", [])
        if each["name"] == "WINDLASS_QUEUES"
    ]
    assert sorted(served) == sorted(queues)
    assert "media.atelier" in queues


def test_the_page_s_pool_says_all_that_a_pool_has_to() -> None:
    (pool,) = read_all(blocks("operating.md")["pools/media-atelier/pool.yaml"])
    Check(POOL).validate(pool)

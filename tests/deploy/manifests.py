"""The rendered manifests as tests read them: objects, the pods that they make, and the containers in those."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

PROJECT = Path(__file__).parents[2]
DEPLOY = PROJECT / "deploy"
KUBERNETES = DEPLOY / "k8s"
OVERLAYS = ("dev", "production", "own-actors")
"""The last one is the first, and a pool for actors of somebody's own."""
POD_MAKERS = {"Deployment", "StatefulSet", "Job"}
OWN_IMAGE = "our-windlass"
OUR_IMAGES = ("windlass", "registry.example.com/windlass", OWN_IMAGE)

Manifest = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Pod:
    """The template of a pod, and the object that makes pods of it."""

    overlay: str
    owner: Manifest
    spec: Manifest
    labels: dict[str, str]

    @property
    def name(self) -> str:
        return str(self.owner["metadata"]["name"])

    @property
    def is_ours(self) -> bool:
        return image_name(self.spec["containers"][0]) in OUR_IMAGES

    @property
    def containers(self) -> list[Manifest]:
        return [*self.spec.get("initContainers", []), *self.spec["containers"]]

    def __str__(self) -> str:
        return f"{self.overlay}-{self.name}"


@cache
def rendered(overlay: str) -> list[Manifest]:
    return read_all((KUBERNETES / "rendered" / f"{overlay}.yaml").read_text())


def read_all(text: str) -> list[Manifest]:
    return [each for each in yaml.load_all(text, yaml.CSafeLoader) if each is not None]


def of_kind(overlay: str, kind: str) -> dict[str, Manifest]:
    return {each["metadata"]["name"]: each for each in rendered(overlay) if each["kind"] == kind}


def pods(overlay: str) -> Iterator[Pod]:
    for each in rendered(overlay):
        template = each.get("spec", {}).get("template") if each["kind"] in POD_MAKERS else None
        if template is not None:
            yield Pod(overlay, each, template["spec"], template["metadata"]["labels"])


def all_pods() -> list[Pod]:
    return [pod for overlay in OVERLAYS for pod in pods(overlay)]


def our_pods() -> list[Pod]:
    return [pod for pod in all_pods() if pod.is_ours]


def our_pod(overlay: str, name: str) -> Pod:
    return next(pod for pod in pods(overlay) if pod.name == name)


def pools(overlay: str) -> list[Pod]:
    return [pod for pod in pods(overlay) if pod.labels.get("app.kubernetes.io/component") == "actors"]


def image_name(container: Manifest) -> str:
    return str(container["image"]).rpartition(":")[0] or str(container["image"])


def config_data(overlay: str, name: str) -> dict[str, str]:
    """What the ConfigMap of this name holds, whatever hash its name has."""
    (found,) = [each for each in of_kind(overlay, "ConfigMap").values() if base_name(each) == name]
    data: dict[str, str] = found["data"]
    return data


def base_name(config_map: Manifest) -> str:
    return str(config_map["metadata"]["name"]).rpartition("-")[0]


def is_a_dashboard(manifest: Manifest) -> bool:
    """A ConfigMap that Grafana looks for by its label, and no pod of ours."""
    return "grafana_dashboard" in manifest["metadata"].get("labels", {})


def environment(pod: Pod, container: Manifest) -> dict[str, str | None]:
    """The variables of a container; none for a value that comes from a Secret."""
    found: dict[str, str | None] = {}
    for source in container.get("envFrom", []):
        if "configMapRef" in source:
            found |= config_data(pod.overlay, source["configMapRef"]["name"].rpartition("-")[0])
    return found | {each["name"]: each.get("value") for each in container.get("env", [])}


def as_bytes(quantity: str) -> int:
    units = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
    return int(quantity[:-2]) * units[quantity[-2:]]

"""The rendered manifests are what Kubernetes and the operators understand, field by field and version by version."""

import copy
import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

import jsonschema_rs
import pytest

from tests.deploy.manifests import KUBERNETES, OVERLAYS, Manifest, read_all, rendered
from tests.deploy.schemas import CUSTOM, POOL

VERSIONS = tuple(f"1.{minor}" for minor in range(29, 38))

Check = jsonschema_rs.Draft202012Validator


class UnknownKind(Exception):
    pass


def check(manifest: Manifest, version: str) -> None:
    """Raises for a field that is unknown, missing or of another type, and for a kind that nobody knows."""
    kind = manifest["kind"]
    if kind in CUSTOM:
        Check(CUSTOM[kind]).validate(manifest)
        return
    group = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", manifest["apiVersion"])
    check_of(f"{kind.lower()}-{group}.json", version).validate(manifest)


@cache
def check_of(name: str, version: str) -> Check:
    """Kubernetes' own schema, read strictly; the package that brings them would read two megabytes for every object."""
    try:
        schema = read_schema(name, version)
    except FileNotFoundError:
        raise UnknownKind(name) from None
    return Check(schema, retriever=lambda _uri: read_schema("_definitions.json", version))


@cache
def read_schema(name: str, version: str) -> Any:
    folder = files("kubernetes_validate") / "kubernetes-json-schema" / f"v{version}.0-local-strict"
    return json.loads((folder / name).read_text())


@cache
def manifests() -> list[Manifest]:
    """Of both overlays; what is alike in both, once."""
    found: list[Manifest] = []
    for overlay in OVERLAYS:
        found += [each for each in rendered(overlay) if each not in found]
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_understood(version: str) -> None:
    for manifest in manifests():
        try:
            check(manifest, version)
        except jsonschema_rs.ValidationError as error:
            where = "/".join(map(str, error.instance_path))
            pytest.fail(f"{manifest['kind']} {manifest['metadata']['name']}: {error.message} at {where}")


def an_object(kind: str, overlay: str = "production") -> Manifest:
    return copy.deepcopy(next(each for each in rendered(overlay) if each["kind"] == kind))


MISTAKES: dict[str, tuple[str, tuple[str | int, ...], str, Any]] = {
    "a typo in a probe": ("Deployment", ("spec", "template", "spec", "containers", 0), "livenessProb", {}),
    "a number where text is wanted": ("Service", ("spec", "ports", 0), "name", 80),
    "a typo in a ScaledObject": ("ScaledObject", ("spec",), "maxReplicas", 3),
    "a threshold that is no text": ("ScaledObject", ("spec", "triggers", 0, "metadata"), "targetQueryValue", 8),
    "a typo in a Cluster": ("Cluster", ("spec", "postgresql", "synchronous"), "durability", "required"),
    "a word that there is not": ("Cluster", ("spec", "postgresql", "synchronous"), "dataDurability", "always"),
    "a typo in a RabbitmqCluster": ("RabbitmqCluster", ("spec", "rabbitmq"), "config", ""),
    "a typo in an ExternalSecret": ("ExternalSecret", ("spec", "target"), "named", ""),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake: str) -> None:
    kind, path, field, value = MISTAKES[mistake]
    manifest = an_object(kind)
    place: Any = manifest
    for step in path:
        place = place[step]
    place[field] = value
    with pytest.raises(jsonschema_rs.ValidationError):
        check(manifest, VERSIONS[-1])


def test_a_kind_that_nobody_knows_is_refused() -> None:
    with pytest.raises(UnknownKind):
        check({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {}}, VERSIONS[0])


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_no_two_objects_have_one_name(overlay: str) -> None:
    names = [(each["kind"], each["metadata"]["name"]) for each in rendered(overlay)]
    assert len(set(names)) == len(names)


def test_every_pool_says_all_that_a_pool_has_to() -> None:
    files = sorted(KUBERNETES.glob("**/pool.yaml"))
    assert files
    for file in files:
        (pool,) = read_all(file.read_text())
        Check(POOL).validate(pool)

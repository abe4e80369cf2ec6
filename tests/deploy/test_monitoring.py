"""The component that brings rules and dashboards into a cluster."""

import copy
import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from tests.deploy.manifests import DEPLOY, KUBERNETES, Manifest, is_a_dashboard, of_kind, read_all, rendered
from tests.deploy.test_rendering import kustomize
from tests.deploy.test_schemas import VERSIONS, check

COMPONENT = KUBERNETES / "components" / "monitoring"
LARGEST_CONFIG_MAP = 2**20


def rule() -> Manifest:
    (found,) = read_all((COMPONENT / "rules.yaml").read_text())
    return found


def dashboards() -> list[Manifest]:
    return read_all((COMPONENT / "dashboards.yaml").read_text())


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_of_it_is_understood(version: str) -> None:
    for manifest in (rule(), *dashboards()):
        check(manifest, version)


@pytest.mark.parametrize(
    ("field", "value"), [("severity", "page"), ("for", "soon"), ("keepFiringFor", "5m"), ("expr", "")]
)
def test_a_mistake_in_a_rule_is_found(field: str, value: str) -> None:
    manifest = copy.deepcopy(rule())
    alert: Any = manifest["spec"]["groups"][-1]["rules"][-1]
    alert[field] = value
    with pytest.raises(jsonschema_rs.ValidationError):
        check(manifest, VERSIONS[-1])


def test_a_cluster_has_the_rules_and_dashboards_that_a_machine_has() -> None:
    files = sorted((DEPLOY / "monitoring" / "rules").glob("*.yaml"))
    groups = [group for file in files for group in yaml.safe_load(file.read_text())["groups"]]
    assert rule()["spec"]["groups"] == groups
    held = {name: json.loads(text) for each in dashboards() for name, text in each["data"].items()}
    files = sorted((DEPLOY / "monitoring" / "dashboards").glob("*.json"))
    assert held == {f"windlass-{file.name}": json.loads(file.read_text()) for file in files}


def test_what_was_rendered_has_them_as_they_are() -> None:
    (found,) = of_kind("production", "PrometheusRule").values()
    assert found["spec"] == rule()["spec"]
    shown = [each["data"] for each in rendered("production") if is_a_dashboard(each)]
    assert sorted(shown, key=str) == sorted((each["data"] for each in dashboards()), key=str)


def test_the_dashboards_are_found_by_grafana_and_fit_into_a_config_map() -> None:
    for each in dashboards():
        assert each["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert sum(map(len, each["data"].values())) < LARGEST_CONFIG_MAP / 4


def test_an_overlay_can_take_it_in(tmp_path: Path) -> None:
    folder = tmp_path / "overlays" / "ours"
    folder.mkdir(parents=True)
    (tmp_path / "monitoring").symlink_to(COMPONENT)
    kustomization = {"namespace": "windlass", "components": ["../../monitoring"]}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    made = subprocess.run([*kustomize(), str(folder)], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    kinds = [each["kind"] for each in read_all(made.stdout)]
    assert kinds.count("PrometheusRule") == 1
    assert kinds.count("ConfigMap") == len(dashboards())

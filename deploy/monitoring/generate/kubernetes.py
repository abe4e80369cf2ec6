"""The same rules and dashboards as objects of Kubernetes: a PrometheusRule and Grafana's ConfigMaps."""

from typing import Any

from deploy.monitoring.generate.alerts import Group
from deploy.monitoring.generate.grafana import Dashboard

LABELS = {"app.kubernetes.io/name": "windlass", "app.kubernetes.io/component": "monitoring"}


def rule(groups: tuple[Group, ...]) -> dict[str, Any]:
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "windlass", "labels": LABELS},
        "spec": {"groups": [each.document() for each in groups]},
    }


def config_map(dashboard: Dashboard) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"windlass-dashboard-{dashboard.name}",
            "labels": {**LABELS, "grafana_dashboard": "1"},
            "annotations": {"grafana_folder": "Windlass"},
        },
        "data": {f"windlass-{dashboard.name}.json": dashboard.compact()},
    }

"""Every file that is generated, with what stands in it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from deploy.monitoring.generate import kubernetes, objectives, symptoms
from deploy.monitoring.generate.alerts import Group
from deploy.monitoring.generate.dashboards import api_and_streams, overview, providers, queue, workers
from deploy.monitoring.generate.grafana import Dashboard

MONITORING = Path(__file__).parents[1]
COMPONENT = MONITORING.parent / "k8s" / "components" / "monitoring"
HEADING = (
    "# Written by `python -m deploy.monitoring.generate`, which `make fmt` does; `make check` fails when it is stale.\n"
)


def dashboards() -> tuple[Dashboard, ...]:
    return tuple(each.dashboard() for each in (overview, providers, queue, workers, api_and_streams))


def groups() -> tuple[Group, ...]:
    return (*objectives.groups(), *symptoms.groups())


def files() -> dict[Path, str]:
    rules = {"objectives": objectives.groups(), "symptoms": symptoms.groups()}
    return {
        **{MONITORING / "dashboards" / f"{each.name}.json": each.text() for each in dashboards()},
        **{
            MONITORING / "rules" / f"{name}.yaml": as_yaml([{"groups": [each.document() for each in held]}])
            for name, held in rules.items()
        },
        COMPONENT / "rules.yaml": as_yaml([kubernetes.rule(groups())]),
        COMPONENT / "dashboards.yaml": as_yaml(kubernetes.config_map(each) for each in dashboards()),
    }


class Dumper(yaml.SafeDumper):
    """Repeats what is meant twice, instead of pointing to it."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


def as_yaml(documents: Iterable[dict[str, Any]]) -> str:
    text: str = yaml.dump_all(documents, Dumper=Dumper, sort_keys=False, width=110, allow_unicode=True)
    return HEADING + text

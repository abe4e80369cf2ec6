"""Rules and dashboards as they are committed, read as tests want to look at them."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

PROJECT = Path(__file__).parents[2]
MONITORING = PROJECT / "deploy" / "monitoring"

Document = dict[str, Any]


@dataclass(frozen=True)
class Expression:
    """`where` says which panel or rule it is of; `text` has Grafana's variables in it still."""

    where: str
    text: str
    legend: str = ""

    def filled(self, window: str = "5m", **chosen: str) -> str:
        """As Grafana sends it: with a window for rates and a value for each variable, `.+` if none is given."""
        text = self.text.replace("$__rate_interval", window)
        return re.sub(r"\$(\w+)", lambda name: chosen.get(name[1], ".+"), text)

    def __str__(self) -> str:
        return self.where


@cache
def dashboards() -> dict[str, Document]:
    return {path.stem: json.loads(path.read_text()) for path in sorted((MONITORING / "dashboards").glob("*.json"))}


def panels(dashboard: Document) -> list[Document]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


@cache
def rules() -> list[Document]:
    files = sorted((MONITORING / "rules").glob("*.yaml"))
    return [rule for path in files for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]


def alerts() -> list[Document]:
    return [rule for rule in rules() if "alert" in rule]


def recorded() -> set[str]:
    return {rule["record"] for rule in rules() if "record" in rule}


def panel_expressions() -> Iterator[Expression]:
    for name, dashboard in dashboards().items():
        for panel in panels(dashboard):
            for target in panel["targets"]:
                legend = target["legendFormat"].replace("__auto", "")
                yield Expression(f"{name}: {panel['title']} {target['refId']}", target["expr"], legend)


def rule_expressions() -> Iterator[Expression]:
    for rule in rules():
        severity = rule.get("labels", {}).get("severity", "")
        yield Expression(f"{rule.get('record') or rule['alert']} {severity}".strip(), rule["expr"])


def all_expressions() -> list[Expression]:
    return [*panel_expressions(), *rule_expressions()]

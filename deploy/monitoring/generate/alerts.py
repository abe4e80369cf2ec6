"""An alert and a recording rule as their authors write them, and what Prometheus reads."""

from dataclasses import dataclass, field
from typing import Any

PAGE, TICKET = "page", "ticket"
"""Somebody is woken; somebody looks at it in the morning."""

RUNBOOKS = "deploy/monitoring/runbooks"
"""Where the pages are in this tree. Put the address at which your people read it before it, and `make fmt`."""

WINDLASS = "{{ $externalLabels.windlass_url }}"
"""Where people reach the page, from Prometheus' own `external_labels`; where it is not there, a path remains."""


@dataclass(frozen=True)
class Recording:
    name: str
    expression: str

    def document(self) -> dict[str, Any]:
        return {"record": self.name, "expr": self.expression}


@dataclass(frozen=True)
class Alert:
    """`summary` and `description` name what it is about by its labels; `lasting` is how long it must have been so.
    `view` is where on the page one sees it, its filter included."""

    name: str
    severity: str
    expression: str
    lasting: str
    summary: str
    description: str
    labels: dict[str, str] = field(default_factory=dict)
    view: str = "/"

    def document(self) -> dict[str, Any]:
        return {
            "alert": self.name,
            "expr": self.expression,
            "for": self.lasting,
            "labels": {"severity": self.severity, **self.labels},
            "annotations": {
                "summary": self.summary,
                "description": self.description,
                "runbook_url": f"{RUNBOOKS}/{self.name}.md",
                "page_url": f"{WINDLASS}{self.view}",
            },
        }


@dataclass(frozen=True)
class Group:
    """Rules that are evaluated together, one after the other."""

    name: str
    rules: tuple[Recording | Alert, ...]
    interval: str = "30s"

    def document(self) -> dict[str, Any]:
        return {"name": self.name, "interval": self.interval, "rules": [each.document() for each in self.rules]}

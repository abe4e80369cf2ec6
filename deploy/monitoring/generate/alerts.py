"""An alert and a recording rule as their authors write them, and what Prometheus reads."""

from dataclasses import dataclass, field
from typing import Any

PAGE, TICKET = "page", "ticket"
"""Somebody is woken; somebody looks at it in the morning."""

RUNBOOKS = "deploy/monitoring/runbooks"
"""Where the pages are in this tree. Put the address at which your people read it before it, and `make fmt`."""


@dataclass(frozen=True)
class Recording:
    name: str
    expression: str

    def document(self) -> dict[str, Any]:
        return {"record": self.name, "expr": self.expression}


@dataclass(frozen=True)
class Alert:
    """`summary` and `description` name what it is about by its labels; `lasting` is how long it must have been so."""

    name: str
    severity: str
    expression: str
    lasting: str
    summary: str
    description: str
    labels: dict[str, str] = field(default_factory=dict)

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

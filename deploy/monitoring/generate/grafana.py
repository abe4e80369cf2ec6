"""A dashboard as Grafana reads it: rows from top to bottom, panels from left to right, none over another."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from deploy.monitoring.generate.panels import DATASOURCE, Document, Panel

COLUMNS = 24
TAG = "windlass"


@dataclass(frozen=True)
class Row:
    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True)
class Variable:
    """What one chooses at the top; `labels` asks Prometheus which values there are."""

    name: str
    title: str
    labels: str
    several: bool = False
    hidden: bool = False

    def document(self) -> Document:
        return {
            "type": "query",
            "name": self.name,
            "label": self.title,
            "datasource": DATASOURCE,
            "query": {"query": self.labels, "refId": self.name},
            "definition": self.labels,
            "refresh": 2,
            "sort": 1,
            "multi": self.several,
            "includeAll": self.several,
            **({"allValue": ".+", "current": {"text": "All", "value": "$__all"}} if self.several else {}),
            "hide": 2 if self.hidden else 0,
        }


@dataclass(frozen=True)
class Dashboard:
    name: str
    title: str
    description: str
    rows: Sequence[Row]
    variables: Sequence[Variable] = ()

    def document(self) -> Document:
        return {
            "uid": f"windlass-{self.name}",
            "title": f"Windlass: {self.title}",
            "description": self.description,
            "tags": [TAG],
            "editable": False,
            "graphTooltip": 1,
            "refresh": "30s",
            "schemaVersion": 39,
            "version": 1,
            "time": {"from": "now-3h", "to": "now"},
            "timezone": "browser",
            "links": [LINKS],
            "templating": {"list": [CHOOSE_DATASOURCE, *(each.document() for each in self.variables)]},
            "annotations": {"list": []},
            "panels": self._panels(),
        }

    def text(self) -> str:
        return json.dumps(self.document(), indent=1, ensure_ascii=False) + "\n"

    def compact(self) -> str:
        return json.dumps(self.document(), separators=(",", ":"), ensure_ascii=False)

    def _panels(self) -> list[Document]:
        found: list[Document] = []
        y = 0
        for row in self.rows:
            place = {"h": 1, "w": COLUMNS, "x": 0, "y": y}
            heading = {"id": len(found) + 1, "type": "row", "title": row.title, "collapsed": False, "panels": []}
            found.append({**heading, "gridPos": place})
            y += 1
            x = tallest = 0
            for panel in row.panels:
                if x + panel.width > COLUMNS:
                    x, y, tallest = 0, y + tallest, 0
                found.append(panel.document(len(found) + 1, x, y))
                x += panel.width
                tallest = max(tallest, panel.height)
            y += tallest
        return found


LINKS: Document = {
    "type": "dashboards",
    "title": "Windlass",
    "tags": [TAG],
    "asDropdown": False,
    "includeVars": True,
    "keepTime": True,
    "targetBlank": False,
    "icon": "external link",
    "tooltip": "",
    "url": "",
}
CHOOSE_DATASOURCE: Document = {
    "type": "datasource",
    "name": "datasource",
    "label": "Prometheus",
    "query": "prometheus",
    "regex": "",
    "refresh": 1,
    "multi": False,
    "includeAll": False,
    "hide": 0,
    "current": {},
    "options": [],
}

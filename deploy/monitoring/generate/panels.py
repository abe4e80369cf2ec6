"""Panels as a dashboard's author writes them, and the JSON that Grafana makes of each."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Document = dict[str, Any]

DATASOURCE: Document = {"type": "prometheus", "uid": "${datasource}"}
GREEN, YELLOW, RED, BLUE = "green", "yellow", "red", "blue"


def a_second(what: str) -> str:
    """The unit of a rate: Grafana's own words know requests, operations and events alone."""
    return f"suffix: {what}/s"


@dataclass(frozen=True)
class Query:
    expression: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    """`description` says what is good and what to do; `steps` are values from which a colour begins."""

    kind: str
    title: str
    description: str
    queries: Sequence[Query]
    unit: str
    width: int
    height: int
    steps: Sequence[tuple[float, str]] = ()
    words: dict[str, tuple[str, str]] = field(default_factory=dict)
    decimals: int | None = None
    stacked: bool = False
    least: float | None = 0
    most: float | None = None
    leads_to: str = ""
    """A label whose value, clicked at, opens the dashboard that is about it: `queue` or `provider`."""

    def document(self, number: int, x: int, y: int) -> Document:
        return {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": DATASOURCE,
            "gridPos": {"h": self.height, "w": self.width, "x": x, "y": y},
            "targets": [self._target(*each) for each in zip("ABCDEFGH", self.queries, strict=False)],
            "fieldConfig": {"defaults": self._defaults(), "overrides": []},
            "options": OPTIONS[self.kind],
            **({"transformations": TABLE_COLUMNS} if self.kind == "table" else {}),
        }

    def _target(self, letter: str, query: Query) -> Document:
        at_once = self.kind in {"stat", "table"}
        return {
            "refId": letter,
            "datasource": DATASOURCE,
            "expr": query.expression,
            "legendFormat": query.legend or "__auto",
            "instant": at_once,
            "range": not at_once,
            **({"format": "table"} if self.kind == "table" else {}),
        }

    def _defaults(self) -> Document:
        steps = [{"color": GREEN, "value": None}, *({"color": colour, "value": value} for value, colour in self.steps)]
        mappings = [
            {"type": "value", "options": {value: {"text": text, "color": colour, "index": index}}}
            for index, (value, (text, colour)) in enumerate(self.words.items())
        ]
        found: Document = {
            "unit": self.unit,
            "thresholds": {"mode": "absolute", "steps": steps},
            "mappings": mappings,
            "color": {"mode": "palette-classic" if self.kind == "timeseries" else "thresholds"},
            **({} if self.decimals is None else {"decimals": self.decimals}),
            **({} if self.least is None else {"min": self.least}),
            **({} if self.most is None else {"max": self.most}),
            **({"links": [self._way()]} if self.leads_to else {}),
        }
        if self.kind == "timeseries":
            found["custom"] = {
                "lineWidth": 1,
                "fillOpacity": 30 if self.stacked else 8,
                "showPoints": "never",
                "spanNulls": False,
                "stacking": {"mode": "normal" if self.stacked else "none", "group": "A"},
                "thresholdsStyle": {"mode": "line" if self.steps else "off"},
            }
        elif self.kind == "state-timeline":
            found["custom"] = {"fillOpacity": 70, "lineWidth": 0}
        return found

    def _way(self) -> Document:
        label = self.leads_to
        chosen = f"var-{label}=${{__field.labels.{label}}}&${{datasource:queryparam}}&${{__url_time_range}}"
        return {"title": f"More about this {label}", "url": f"/d/{ABOUT[label]}?{chosen}", "targetBlank": False}


ABOUT = {"queue": "windlass-queue", "provider": "windlass-providers"}
OPTIONS: dict[str, Document] = {
    "timeseries": {
        "legend": {"displayMode": "table", "placement": "bottom", "showLegend": True, "calcs": ["lastNotNull", "max"]},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "stat": {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "background",
        "graphMode": "none",
        "justifyMode": "center",
        "textMode": "auto",
        "orientation": "auto",
    },
    "table": {"showHeader": True, "cellHeight": "sm", "footer": {"show": False}},
    "state-timeline": {
        "mergeValues": True,
        "showValue": "auto",
        "alignValue": "center",
        "rowHeight": 0.9,
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "single"},
    },
}
TABLE_COLUMNS: list[Document] = [
    {"id": "organize", "options": {"excludeByName": {"Time": True, "__name__": True}, "indexByName": {}}}
]


def graph(
    title: str,
    description: str,
    *queries: Query,
    unit: str = "short",
    width: int = 12,
    height: int = 8,
    steps: Sequence[tuple[float, str]] = (),
    stacked: bool = False,
    most: float | None = None,
    leads_to: str = "",
) -> Panel:
    return Panel(
        "timeseries",
        title,
        description,
        queries,
        unit,
        width,
        height,
        steps=steps,
        stacked=stacked,
        most=most,
        leads_to=leads_to,
    )


def stat(
    title: str,
    description: str,
    expression: str,
    *,
    unit: str = "short",
    width: int = 4,
    steps: Sequence[tuple[float, str]] = (),
    words: dict[str, tuple[str, str]] | None = None,
    decimals: int | None = None,
) -> Panel:
    queries = (Query(expression, title),)
    return Panel("stat", title, description, queries, unit, width, 4, steps=steps, words=words or {}, decimals=decimals)


def table(title: str, description: str, expression: str, *, unit: str = "short", width: int = 12) -> Panel:
    return Panel("table", title, description, (Query(expression),), unit, width, 8)


def timeline(
    title: str, description: str, query: Query, *, words: dict[str, tuple[str, str]], width: int = 12
) -> Panel:
    """What something was, and from when to when."""
    return Panel("state-timeline", title, description, (query,), "short", width, 7, words=words)

"""Which metrics, labels and values an expression of PromQL names, and which labels its result has."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import promql_parser
from prometheus_client import ProcessCollector

from tests.monitoring.written import alerts, recorded
from windlass.shared import metrics
from windlass.shared.errors import ERROR_TYPES
from windlass.shared.metrics.declaring import CATALOGUE, SERVICES

OF_THE_TARGET = frozenset({"instance", "job"})
OPEN_VALUES = frozenset({"status", "le", "route", "job", "alertname", "alertstate"})
"""Labels whose values nobody lists."""


class Mistake(AssertionError):
    """What an expression gets wrong."""


@dataclass(frozen=True)
class Known:
    labels: frozenset[str]
    meaning: str


@cache
def catalogue() -> dict[str, Known]:
    """Every series that there is by its name: what the code declares, what is recorded, and what Prometheus adds."""
    for module in pkgutil.iter_modules(metrics.__path__, f"{metrics.__name__}."):
        importlib.import_module(module.name)
    found: dict[str, Known] = {}
    for declared in CATALOGUE:
        labels, meaning = frozenset(declared.labels) | OF_THE_TARGET, declared.meaning
        if declared.kind == "histogram":
            found[f"{declared.name}_bucket"] = Known(labels | {"le"}, meaning)
            found |= {f"{declared.name}_{part}": Known(labels, meaning) for part in ("sum", "count")}
        else:
            found[declared.name] = Known(labels, meaning)
    for metric in ProcessCollector(namespace="windlass", registry=None).collect():
        found |= {sample.name: Known(OF_THE_TARGET, metric.documentation) for sample in metric.samples}
    found |= {name: Known(frozenset(), "") for name in recorded()}
    said = {label for alert in alerts() for label in alert["labels"]}
    everything = frozenset().union(*(known.labels for known in found.values()))
    found["ALERTS"] = Known(everything | said | {"alertname", "alertstate"}, "")
    found["up"] = Known(OF_THE_TARGET, "")
    return found


def result_labels(text: str) -> frozenset[str]:
    """The labels of what an expression gives; a `Mistake` for a name, label or value that there is not, and for two
    sides that can never meet because their labels differ."""
    return _labels(promql_parser.parse(text))


def _labels(node: Any) -> frozenset[str]:
    readers = {
        "VectorSelector": _selected,
        "MatrixSelector": lambda node: _selected(node.vector_selector),
        "SubqueryExpr": lambda node: _labels(node.expr),
        "ParenExpr": lambda node: _labels(node.expr),
        "UnaryExpr": lambda node: _labels(node.expr),
        "AggregateExpr": _aggregated,
        "BinaryExpr": _joined,
        "Call": _called,
    }
    read = readers.get(type(node).__name__)
    return read(node) if read else frozenset()


def _selected(node: Any) -> frozenset[str]:
    known = catalogue().get(node.name)
    if known is None:
        raise Mistake(f"nobody says {node.name}")
    for matcher in node.matchers.matchers:
        if matcher.name not in known.labels:
            raise Mistake(f"{node.name} has no label {matcher.name}")
        for value in _values(matcher):
            if not _is_a_value(value, matcher.name, known.meaning):
                raise Mistake(f"{node.name}: {matcher.name} is never {value}")
    return known.labels


def _values(matcher: Any) -> Iterator[str]:
    if matcher.name not in OPEN_VALUES and matcher.value != ".+":
        yield from matcher.value.split("|")


def _is_a_value(value: str, label: str, meaning: str) -> bool:
    """The catalogue names the values of a label in its meaning; errors, services and states have lists of their own."""
    if label == "error_type":
        return value in ERROR_TYPES
    if label == "service":
        return value in SERVICES
    return re.search(rf"\b{re.escape(value)}\b", meaning) is not None


def _aggregated(node: Any) -> frozenset[str]:
    inner = _labels(node.expr)
    if "topk" in str(node.op):
        return inner
    by = frozenset(node.modifier.labels) if node.modifier else frozenset()
    if missing := by - inner:
        raise Mistake(f"{', '.join(sorted(missing))} cannot be grouped by in {node.expr}")
    return by


def _called(node: Any) -> frozenset[str]:
    name = node.func.name
    inner = frozenset().union(*(_labels(each) for each in node.args))
    if name == "label_replace":
        return inner | {node.args[1].val}
    if name == "histogram_quantile":
        if "le" not in inner:
            raise Mistake("a quantile without le")
        return inner - {"le"}
    if name == "absent":
        selector = node.args[0]
        return frozenset(each.name for each in selector.matchers.matchers if "Equal" in str(each.op))
    return inner


def _joined(node: Any) -> frozenset[str]:
    left, right = _labels(node.lhs), _labels(node.rhs)
    operator = str(node.op)
    if operator == "or":
        return left | right
    if "NumberLiteral" in {type(node.lhs).__name__, type(node.rhs).__name__} or _is_scalar(node.lhs):
        return left | right
    matching = node.modifier.matching if node.modifier else None
    if matching is not None:
        on = frozenset(matching.labels)
        if missing := on - (left & right):
            raise Mistake(f"{', '.join(sorted(missing))} is not on both sides of {operator}")
    elif left != right:
        raise Mistake(f"{sorted(left)} {operator} {sorted(right)} never meet")
    return left


def _is_scalar(node: Any) -> bool:
    if type(node).__name__ == "ParenExpr":
        return _is_scalar(node.expr)
    return type(node).__name__ == "NumberLiteral" or (type(node).__name__ == "Call" and node.func.name == "time")

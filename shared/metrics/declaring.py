"""How a metric is declared: named once, with the services that say it; `docs/metrics.md` is written from this."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

Instrument = Counter | Gauge | Histogram
Kind = TypeVar("Kind", bound=Instrument)

API, DISPATCHER, ACTORS, JANITOR, ORCHESTRATOR = "api", "dispatcher", "actors", "janitor", "orchestrator"
SERVICES = (API, DISPATCHER, ACTORS, JANITOR, ORCHESTRATOR)

WAIT_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600, 14400)
"""From a start at once to a night's backlog; 60 is the border of the objective `start within a minute`."""
WORK_SECONDS = (0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200)
CALL_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


@dataclass(frozen=True)
class Declared:
    """One metric, what it means, and the services whose `/metrics` shows it."""

    instrument: Instrument
    name: str
    kind: str
    meaning: str
    labels: tuple[str, ...]
    services: tuple[str, ...]


CATALOGUE: list[Declared] = []


def counter(name: str, meaning: str, labels: Sequence[str], *, of: Iterable[str]) -> Counter:
    made = Counter(name, meaning, labels, registry=None)
    CATALOGUE.append(Declared(made, name, "counter", meaning, tuple(labels), tuple(of)))
    return made


def gauge(name: str, meaning: str, labels: Sequence[str], *, of: Iterable[str]) -> Gauge:
    made = Gauge(name, meaning, labels, registry=None)
    CATALOGUE.append(Declared(made, name, "gauge", meaning, tuple(labels), tuple(of)))
    return made


def histogram(
    name: str, meaning: str, labels: Sequence[str], *, buckets: Sequence[float], of: Iterable[str]
) -> Histogram:
    made = Histogram(name, meaning, labels, buckets=buckets, registry=None)
    CATALOGUE.append(Declared(made, name, "histogram", meaning, tuple(labels), tuple(of)))
    return made


class Kept(dict[tuple[str, ...], Kind]):
    """An instrument's children by their labels, for where every task passes: the library would take a lock and make a
    text of each label every time."""

    def __init__(self, instrument: Kind) -> None:
        super().__init__()
        self._instrument = instrument

    def __missing__(self, labels: tuple[str, ...]) -> Kind:
        child: Kind = self._instrument.labels(*labels)  # type: ignore[assignment] # of the same kind
        self[labels] = child
        return child


def registry_of(service: str, *, without: Collection[object] = ()) -> CollectorRegistry:
    """A registry with what this service says; each process is read by itself, so nothing is shared between two."""
    registry = CollectorRegistry()
    for declared in CATALOGUE:
        if service in declared.services and declared.instrument not in without:
            registry.register(declared.instrument)
    return registry

"""What a process says to Prometheus, as a test reads it."""

from collections.abc import Iterator
from dataclasses import dataclass

import httpx
from prometheus_client.parser import text_string_to_metric_families


@dataclass(frozen=True)
class Sample:
    """One line: a histogram has several to its name."""

    family: str
    name: str
    labels: dict[str, str]
    value: float


class Said:
    """The samples of one or several answers."""

    def __init__(self, *texts: str) -> None:
        self.samples = list(_read(texts))

    def names(self) -> set[str]:
        """Of the metrics that have at least one sample, as they are declared."""
        return {sample.family for sample in self.samples} | {sample.name for sample in self.samples}

    def total(self, name: str, **labels: str) -> float:
        """The sum of all samples of this name that have these labels."""
        return sum(self.values(name, **labels))

    def values(self, name: str, **labels: str) -> list[float]:
        return [
            sample.value for sample in self.samples if sample.name == name and labels.items() <= sample.labels.items()
        ]


def _read(texts: tuple[str, ...]) -> Iterator[Sample]:
    for text in texts:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                yield Sample(family.name, sample.name, dict(sample.labels), sample.value)


def ask(port: int) -> str:
    """The answer of the process that serves this port."""
    response = httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=60, trust_env=False)
    response.raise_for_status()
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    return response.text

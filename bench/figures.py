"""What a measurement says: one line of a table, with its aim beside it and the raw numbers behind it.

Every module that measures has a function `figures() -> list[Figure]` and is one part of the report. It may have
`versions() -> Mapping[str, str]` too, of what it measures besides Windlass' own parts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    `numbers` are raw and in the units that their names end in (`tasks_per_second`, `p99_ms`); `reached` is None where
    nothing is aimed at. `label` is what a plot calls it.
    """

    name: str
    value: str
    aim: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    reached: bool | None = None
    label: str = ""


def told(value: float) -> str:
    """As many digits as say something."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def show(figures: Sequence[Figure]) -> None:
    if not figures:
        return
    width = max(len(figure.name) for figure in figures)
    for figure in figures:
        missed = "  NOT REACHED" if figure.reached is False else ""
        print(f"{figure.name:<{width}}  {figure.value}  ({figure.aim}){missed}", flush=True)

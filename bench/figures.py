"""What a measurement says: one line of a table, with its aim beside it."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    name: str
    value: str
    aim: str


def show(figures: Sequence[Figure]) -> None:
    width = max(len(figure.name) for figure in figures)
    for figure in figures:
        print(f"{figure.name:<{width}}  {figure.value}  ({figure.aim})")

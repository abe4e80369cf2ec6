"""The report as tables for people: what was measured, what came out, and what it was to be."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.figures import Figure
from bench.parts import PARTS
from bench.plots import PLOTS, drawn
from bench.report import PLACE, Part, Report, figures_of

INTRODUCTION = """# What was measured

Written by `make bench`; do not edit. The same numbers, raw, are in [figures.json](figures.json). All of one table
ran on the same servers and cores, in turns. Absolute figures are those of the machine it ran on; the ratios carry over.
`machine` is how many wanted a core in the minute before the part began (a part that follows another sees the end of
that one): at most half of one is idle, and more than there are cores stands in bold.
"""


def keep(report: Report, place: Path = PLACE) -> None:
    place.mkdir(parents=True, exist_ok=True)
    (place / "tables.md").write_text(as_text(report))


def as_text(report: Report) -> str:
    pictures = drawn(report)
    sections = [
        _section(name, part, [each for each in pictures if PLOTS[each].part == name]) for name, part in report.items()
    ]
    return "\n".join([INTRODUCTION, _missed(report), *sections, _surroundings(report)])


def _missed(report: Report) -> str:
    missed = [
        f"| {_title(name)} | {_cell(figure.name)} | {_cell(figure.value)} | {_cell(figure.aim)} | {_machine(part)} |"
        for name, part in report.items()
        for figure in figures_of(part)
        if figure.reached is False
    ]
    if not missed:
        return "Every aim is reached.\n"
    head = ["## Aims that are not reached", "", "| part | figure | measured | aim | machine |", "|---|---|---|---|---|"]
    return "\n".join([*head, *missed, ""])


def _section(name: str, part: Part, pictures: Sequence[str]) -> str:
    head = [f"## {_title(name)}", "", f"Measured {_when(part)}: `make bench BENCH={name}`.{_busy(part)}", ""]
    rows = [_row(figure, _machine(part)) for figure in figures_of(part)]
    shown = [line for each in pictures for line in (f"![{PLOTS[each].title}]({each}.svg)", "")]
    columns = ["| figure | measured | aim | reached | machine |", "|---|---|---|---|---|"]
    return "\n".join([*head, *shown, *columns, *rows, ""])


def _row(figure: Figure, machine: str) -> str:
    reached = {True: "yes", False: "**no**", None: ""}[figure.reached]
    return f"| {_cell(figure.name)} | {_cell(figure.value)} | {_cell(figure.aim)} | {reached} | {machine} |"


def _surroundings(report: Report) -> str:
    """One line for each thing; where parts differ, for each value, with the parts that it holds for."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, part in report.items():
        for thing, value in _things(part).items():
            found.setdefault(thing, {}).setdefault(value, []).append(name)
    rows = []
    for thing, values in found.items():
        for value, names in values.items():
            of = f" ({', '.join(names)})" if len(values) > 1 else ""
            rows.append(f"| {_cell(thing)} | {_cell(value)}{of} |")
    return "\n".join(["## On what", "", "| | |", "|---|---|", *rows, ""])


def _things(part: Part) -> Mapping[str, str]:
    durability: Mapping[str, Any] = part["durability"]
    return {
        **{name: str(version) for name, version in part["versions"].items()},
        "cores": str(part["cores"]),
        **{f"Postgres: {name}": str(value) for name, value in durability.items()},
    }


def _when(part: Part) -> str:
    return f"{part['date']} at {part['commit']}" if part["commit"] else str(part["date"])


def _busy(part: Part) -> str:
    """Nobody shall take the times of an overworked machine for ours."""
    if part["load"] <= part["cores"]:
        return ""
    return f" **The machine was busy when it began** (load {part['load']:.0f} on {part['cores']} cores)."


def _machine(part: Part) -> str:
    """Beside each figure: a figure is quoted without the head of its table. With half a core wanted by others, and
    less, times are what they are."""
    if part["load"] <= 0.5:
        return "idle"
    told = f"load {part['load']:.1f}"
    return f"**busy**, {told}" if part["load"] > part["cores"] else told


def _title(name: str) -> str:
    return PARTS.get(name, name)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")

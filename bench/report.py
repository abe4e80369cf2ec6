"""The report that is kept: every part's raw numbers as JSON, each with the day and the commit that it is from."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.figures import Figure

PLACE = Path(__file__).parents[1] / "docs" / "proof"

Part = Mapping[str, Any]
Report = Mapping[str, Part]


def a_part(
    figures: Sequence[Figure], *, date: str, commit: str, surroundings: Mapping[str, Any], load: float = 0
) -> Part:
    """`load` is how many others wanted a core when it began: with more than a few, times mean little."""
    return {
        "date": date,
        "commit": commit,
        "load": load,
        **surroundings,
        "figures": [asdict(figure) for figure in figures],
    }


def with_part(report: Report, name: str, part: Part, order: Sequence[str]) -> Report:
    """The report with this part in place of the older one of its name; what was not measured anew stays as it was."""
    merged = {**report, name: part}
    known = {name: merged[name] for name in order if name in merged}
    return {**known, **merged}


def figures_of(part: Part) -> list[Figure]:
    return [Figure(**figure) for figure in part["figures"]]


def load(place: Path = PLACE) -> Report:
    file = place / "figures.json"
    if not file.exists():
        return {}
    report: Report = json.loads(file.read_text())
    return report


def keep(report: Report, place: Path = PLACE) -> None:
    place.mkdir(parents=True, exist_ok=True)
    (place / "figures.json").write_text(json.dumps(_rounded(report), indent=1, ensure_ascii=False) + "\n")


def _rounded(value: Any) -> Any:
    """Six figures say all that a measurement can, and keep the file readable."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return value

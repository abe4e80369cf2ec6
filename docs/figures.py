"""The figures that `make bench` keeps, found by part and name for the pages that show some of them, and the marks
between which a page has what is drawn."""

import json
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace
from typing import Any

PLACE = Path(__file__).parent / "proof"

Figure = Mapping[str, Any]


class Figures:
    """The whole report. What is not there, or not under that name any more, is an error: an empty cell nobody would
    miss."""

    def __init__(self, report: Mapping[str, Mapping[str, Any]]) -> None:
        self.parts = report

    def found(self, part: str, name: str) -> list[Figure]:
        """All whose name is so; `*` stands for whatever differs from run to run."""
        found = [each for each in self.parts.get(part, {}).get("figures", ()) if fnmatchcase(each["name"], name)]
        if not found:
            raise LookupError(f"docs/proof/figures.json has no {name!r} in its part {part!r}: was it renamed?")
        return found

    def of(self, part: str, name: str) -> SimpleNamespace:
        return numbers_of(self.found(part, name))


def kept_figures() -> Figures:
    return Figures(json.loads((PLACE / "figures.json").read_text()))


def numbers_of(found: Sequence[Figure]) -> SimpleNamespace:
    """One figure's numbers under their names, with their `total` and its `value` as it was told; and of several the
    `least` and the `most` of each number that all of them have, also of those alone that are `aimed` at something."""
    every = [each["numbers"] for each in found]
    shared = [name for name in every[0] if all(name in each for each in every)]
    least, most = (
        SimpleNamespace(**{name: pick(each[name] for each in every) for name in shared}) for pick in (min, max)
    )
    alone = {**every[0], "value": found[0]["value"], "total": sum(every[0].values())} if len(found) == 1 else {}
    aimed = [each for each in found if each["reached"] is not None]
    of_those = {"aimed": numbers_of(aimed)} if 0 < len(aimed) < len(found) else {}
    return SimpleNamespace(**{**alone, **of_those, "least": least, "most": most, "count": len(found)})


def between_marks(text: str, name: str, lines: Sequence[str]) -> str:
    """The page with these lines between its marks of that name, whatever was there."""
    mark = re.compile(rf"(<!-- {name}: drawn by [^\n]*-->\n).*?(<!-- {name}: end -->\n)", re.DOTALL)
    drawn = "".join(f"{line}\n" for line in lines)
    replaced, times = mark.subn(lambda found: f"{found[1]}{drawn}{found[2]}", text)
    if times != 1:
        raise LookupError(f"the page has its marks {name!r} {times} times, and needs them once")
    return replaced


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [_line(head), "|" + "---|" * len(head), *map(_line, rows)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

"""Tables and lists of facts: drawn for a terminal, tab-separated for a pipe."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

GAP: Final = "  "
NARROWEST: Final = 12
STYLES: Final = {
    "blocked": "magenta",
    "queued": "blue",
    "running": "cyan",
    "retrying": "yellow",
    "completed": "green",
    "dead": "red",
    "cancelled": "dim",
    "done": "green",
    "failed": "red",
    "skipped": "dim",
    "stopping": "yellow",
    "escalated": "yellow",
    "started": "green",
    "waiting": "blue",
    "missed": "yellow",
    "refused": "red",
    "paused": "yellow",
    "active": "green",
    "closed": "green",
    "open": "red",
    "half-open": "yellow",
}


@dataclass(frozen=True)
class Table:
    """Rows under headings. On a narrow terminal `wide` columns are cut and others left out, first the empty ones, then
    those in `least` in this order, then from right to left. The first column is always whole: it has the ids."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    empty: str
    wide: frozenset[str] = field(default_factory=frozenset)
    note: str | None = None
    least: tuple[str, ...] = ()

    def draw(self, console: Console) -> None:
        for line in self.drawn(console.width):
            console.print(line, soft_wrap=True)

    def drawn(self, most: int) -> Iterator[Text]:
        """Its lines on a terminal of that width."""
        lines = (self.columns, *self.rows)
        widths = {name: max(cell_len(line[place]) for line in lines) for place, name in enumerate(self.columns)}
        fitted = self._fitted(self._shown(widths, most), most)
        for number, line in enumerate(lines):
            drawn = Text(style="" if number else "bold")
            for name, cell in zip(self.columns, line, strict=True):
                if name in fitted:
                    drawn.append(_cut(cell, fitted[name]), style=STYLES.get(cell, ""))
                    drawn.append(GAP)
            drawn.rstrip()
            yield drawn

    def _shown(self, widths: dict[str, int], most: int) -> dict[str, int]:
        """The columns that there is room for, with their full widths."""
        empty = [name for place, name in enumerate(self.columns) if not any(row[place] for row in self.rows)]
        others = [name for name in reversed(self.columns) if name not in self.wide]
        shown = dict(widths)
        for name in (*empty, *self.least, *others):
            narrowest = [min(width, NARROWEST) if each in self.wide else width for each, width in shown.items()]
            if sum(narrowest) + len(GAP) * (len(shown) - 1) <= most:
                break
            if name != self.columns[0]:
                shown.pop(name, None)
        return shown

    def _fitted(self, widths: dict[str, int], most: int) -> dict[str, int]:
        wide = [name for name in widths if name in self.wide]
        whole = sum(width for name, width in widths.items() if name not in self.wide)
        left = most - whole - len(GAP) * (len(widths) - 1)
        fitted = dict(widths)
        for number, name in enumerate(sorted(wide, key=lambda each: widths[each])):
            fitted[name] = min(widths[name], max(NARROWEST, left // (len(wide) - number)))
            left -= fitted[name]
        return fitted

    def plain(self) -> str:
        return "".join("\t".join(line) + "\n" for line in (self.columns, *self.rows))


@dataclass(frozen=True)
class Facts:
    """One thing, name by name; what has no value is left out."""

    lines: Sequence[tuple[str, str]]

    def draw(self, console: Console) -> None:
        width = max(len(name) for name, _ in self._given())
        for name, value in self._given():
            line = Text.assemble((f"{name:<{width}}  ", "bold"), (value, STYLES.get(value, "")))
            console.print(line, soft_wrap=True)

    def plain(self) -> str:
        return "".join(f"{name}\t{value}\n" for name, value in self._given())

    def _given(self) -> list[tuple[str, str]]:
        return [(name, value) for name, value in self.lines if value]


def _cut(text: str, width: int) -> str:
    """Exactly so wide, whatever script it is in."""
    return set_cell_size(text, width) if cell_len(text) <= width else set_cell_size(text, width - 1) + "…"

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
    """Rows under headings; `wide` columns give way on a narrow terminal, the others are always whole."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    empty: str
    wide: frozenset[str] = field(default_factory=frozenset)
    note: str | None = None

    def draw(self, console: Console) -> None:
        for line in self.drawn(console.width):
            console.print(line, soft_wrap=True)

    def drawn(self, most: int) -> Iterator[Text]:
        """Its lines on a terminal of that width."""
        lines = (self.columns, *self.rows)
        widths = [max(cell_len(line[column]) for line in lines) for column in range(len(self.columns))]
        for number, line in enumerate(lines):
            drawn = Text(style="" if number else "bold")
            for cell, width in zip(line, self._fitted(widths, most), strict=True):
                drawn.append(_cut(cell, width), style=STYLES.get(cell, ""))
                drawn.append(GAP)
            drawn.rstrip()
            yield drawn

    def _fitted(self, widths: list[int], most: int) -> list[int]:
        """Ids are there to be copied: on a terminal that is too narrow lines run over rather than lose a piece."""
        wide = [number for number, column in enumerate(self.columns) if column in self.wide]
        whole = sum(width for number, width in enumerate(widths) if number not in wide)
        left = most - whole - len(GAP) * (len(widths) - 1)
        share = max(NARROWEST, left // max(1, len(wide)))
        return [min(width, share) if number in wide else width for number, width in enumerate(widths)]

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

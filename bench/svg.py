"""Draws bar charts and line charts as SVG that reads well on light and on dark pages, with nothing but text."""

import math
from collections.abc import Mapping, Sequence
from html import escape

from bench.figures import told

WIDTH = 760
MARGIN = 24
HEAD = 70
"""Where the drawing begins, below title and subtitle."""
LEGEND = 20
"""How much lower, below a legend."""
LETTER = 6.9
"""How wide a letter of the usual size is, nearly: an SVG cannot measure its text."""
VALUE_WIDTH = 92
STYLE = """
text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:#24292f}
.card{fill:#ffffff;stroke:#d0d7de}.title{font-size:16px;font-weight:600}.quiet{fill:#57606a}
.grid{stroke:#d8dee4;stroke-width:1}.axis{stroke:#8c959f;stroke-width:1}
.s0{fill:#1f6feb;stroke:#1f6feb}.s1{fill:#d9730d;stroke:#d9730d}.s2{fill:#1a7f5a;stroke:#1a7f5a}
.s3{fill:#8250df;stroke:#8250df}.s4{fill:#bf3989;stroke:#bf3989}.s5{fill:#6e7781;stroke:#6e7781}
.other{fill:#9aa4af;stroke:#9aa4af}rect{stroke:none}.line{fill:none;stroke-width:2.5;stroke-linejoin:round}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.card{fill:#0d1117;stroke:#30363d}.quiet{fill:#9198a1}
.grid{stroke:#262c36}.axis{stroke:#6e7681}.s0{fill:#58a6ff;stroke:#58a6ff}.s1{fill:#f0883e;stroke:#f0883e}
.s2{fill:#3fb950;stroke:#3fb950}.s3{fill:#bc8cff;stroke:#bc8cff}.s4{fill:#f778ba;stroke:#f778ba}
.s5{fill:#9198a1;stroke:#9198a1}.other{fill:#6e7681;stroke:#6e7681}.line{fill:none}}
"""
COLOURS = 6

Series = Mapping[str, Sequence[float]]


def bars(
    title: str, subtitle: str, labels: Sequence[str], series: Series, *, unit: str, ours: Sequence[str] = ()
) -> str:
    """A row for each label, in it a bar for each series. With one series, rows that are not ours are drawn in grey."""
    thick = 22 if len(series) == 1 else 15
    row = thick * len(series) + 14
    left = MARGIN + max((len(label) for label in labels), default=0) * LETTER + 12
    room = WIDTH - MARGIN - VALUE_WIDTH - left
    most = _most(series)
    legend = list(series) if len(series) > 1 else []
    head = HEAD + (LEGEND if legend else 0)
    parts = []
    for number, label in enumerate(labels):
        top = head + number * row
        parts.append(_text(left - 12, top + row / 2 - 2, label, anchor="end"))
        for place, values in enumerate(series.values()):
            grey = len(series) == 1 and ours and label not in ours
            y, wide = top + place * thick, max(values[number] / most * room, 1.5)
            colour = "other" if grey else f"s{place}"
            parts.append(
                f'<rect class="{colour}" x="{left:.1f}" y="{y}" width="{wide:.1f}" height="{thick - 3}" rx="2"/>'
            )
            parts.append(_text(left + wide + 7, y + thick / 2 + 3, f"{told(values[number])} {unit}", kind="quiet"))
    bottom = head + len(labels) * row
    parts.append(f'<line class="axis" x1="{left:.1f}" x2="{left:.1f}" y1="{head - 6}" y2="{bottom - 6}"/>')
    return _card(title, subtitle, legend, parts, bottom + MARGIN / 2)


def lines(title: str, subtitle: str, ticks: Sequence[str], series: Series, *, unit: str, height: int = 250) -> str:
    """A line for each series over evenly spaced ticks, from zero up: nothing is made to look larger than it is."""
    left, right = MARGIN + 58, WIDTH - MARGIN - 30
    top, bottom = HEAD + LEGEND + 6, HEAD + LEGEND + height
    marks = _marks(_most(series))

    def at(number: int, value: float) -> tuple[float, float]:
        across = (right - left) * (number / (len(ticks) - 1) if len(ticks) > 1 else 0.5)
        return left + across, bottom - (bottom - top) * value / marks[-1]

    parts = []
    for mark in marks:
        _, y = at(0, mark)
        parts.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(left - 10, y + 4, f"{told(mark)} {unit}", anchor="end", kind="quiet"))
    for number, tick in enumerate(ticks):
        parts.append(_text(at(number, 0)[0], bottom + 20, tick, anchor="middle", kind="quiet"))
    for place, values in enumerate(series.values()):
        points = [at(number, value) for number, value in enumerate(values)]
        colour = f"s{place % COLOURS}"
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline class="{colour} line" points="{joined}"/>')
        parts += [f'<circle class="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in points]
    return _card(title, subtitle, list(series), parts, bottom + 36)


def _most(series: Series) -> float:
    """The largest number; never nothing, for all is drawn in proportion to it."""
    return max((value for values in series.values() for value in values if value > 1e-9), default=1)


def _marks(most: float) -> list[float]:
    """Round numbers from zero to just above the largest."""
    rough = most / 4
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * each for each in (1, 2, 2.5, 5, 10) if unit * each >= rough)
    return [step * number for number in range(math.ceil(most / step - 1e-9) + 1)]


def _card(title: str, subtitle: str, legend: Sequence[str], parts: Sequence[str], height: float) -> str:
    head = [_text(MARGIN, 30, title, kind="title"), _text(MARGIN, 49, subtitle, kind="quiet")]
    x = float(MARGIN)
    for place, name in enumerate(legend):
        head.append(f'<rect class="s{place % COLOURS}" x="{x:.1f}" y="58" width="11" height="11" rx="2"/>')
        head.append(_text(x + 17, 68, name, kind="quiet"))
        x += 17 + len(name) * LETTER + 16
    size = f'viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(title)}">',
            f"<style>{STYLE}</style>",
            f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:.0f}" rx="8"/>',
            *head,
            *parts,
            "</svg>\n",
        ]
    )


def _text(x: float, y: float, text: str, *, anchor: str = "start", kind: str = "") -> str:
    of_kind = f' class="{kind}"' if kind else ""
    return f'<text{of_kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'

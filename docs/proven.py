"""The parts of `proof.md` that say what was measured and tried, drawn from what is kept under `docs/proof`."""

import re
from collections.abc import Sequence
from pathlib import Path

from docs import mutations, storms
from docs.figures import Figure, Figures, between_marks, kept_figures, numbers_of, table
from docs.proven_rows import ROWS, Row

PROOF = Path(__file__).parent / "proof.md"


def proof() -> str:
    figures, text = kept_figures(), PROOF.read_text()
    drawn = {
        "storms": storms.drawn(storms.load()),
        "mutations": mutations.drawn(mutations.load()),
        "costs": costs(figures),
        "contest": contest(figures),
    }
    for name, lines in drawn.items():
        text = between_marks(text, name, lines)
    return text


def redraw() -> None:
    """For who has just kept something."""
    PROOF.write_text(proof())


def costs(figures: Figures) -> list[str]:
    rows = [cells(row, figures) for row in ROWS]
    return [*table(("", "measured", "aim", "", "part"), rows), "", *_whence(figures)]


def cells(row: Row, figures: Figures) -> tuple[str, str, str, str, str]:
    found = {name: figures.found(*where) for name, where in row.of.items()}
    told = row.told.format(**{name: numbers_of(each) for name, each in found.items()})
    aimed = [each for all_of_one in found.values() for each in all_of_one if each["reached"] is not None]
    aims = "; ".join(dict.fromkeys(each["aim"] for each in aimed))
    parts = ", ".join(dict.fromkeys(f"`{part}`" for part, _ in row.of.values()))
    return row.words, told, aims, verdict(aimed, row.because), parts


def verdict(aimed: Sequence[Figure], because: str) -> str:
    """Where there are several aims, which of them is missed."""
    missed = [each["name"] for each in aimed if not each["reached"]]
    if not missed:
        return "reached" if aimed else ""
    which = "; ".join(missed) if len(aimed) > 1 else ""
    return ": ".join(filter(None, ("**not reached**", which, because)))


def _whence(figures: Figures) -> list[str]:
    """Parts that were measured together, the newest first; nobody shall take the times of a busy machine for ours."""
    together: dict[tuple[str, str], list[str]] = {}
    for name, part in figures.parts.items():
        busy = f" (**busy**, load {part['load']:.1f})" if part["load"] > part["cores"] else ""
        together.setdefault((part["date"], part["commit"] or "no commit"), []).append(f"`{name}`{busy}")
    return [
        f"- {date} at {commit}: {', '.join(parts)}"
        for (date, commit), parts in sorted(together.items(), key=lambda each: each[0][0], reverse=True)
    ]


def contest(figures: Figures) -> list[str]:
    """Of each system the setting that ran, what it did when it was tried and what it did when it counted."""
    rows = []
    for counted in figures.found("contest", "*no-ops drained,*"):
        system = counted["label"]
        ((tasks, setting),) = re.findall(r"^(\d+) no-ops drained, [^(]*\((.*)\)$", counted["name"])
        (tried,) = figures.found("contest", f"settings tried with * no-ops, {system}")
        ((trial_tasks,),) = [re.findall(r"^settings tried with (\d+)", tried["name"])]
        rate = tried["numbers"][f"{setting}, tasks_per_second"]
        rows.append(
            (
                system,
                f"{setting}, the best of {len(tried['numbers'])}",
                f"{rate:,.0f}/s with {int(trial_tasks):,} tasks",
                f"{counted['numbers']['tasks_per_second']:,.0f}/s with {int(tasks):,}",
            )
        )
    return table(("system", "setting", "tried", "counted"), rows)

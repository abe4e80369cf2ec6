"""The measured part of docs/comparison.md: its rows are drawn from the results that `make bench` has kept."""

import json
from pathlib import Path
from typing import Any

COMPARISON = Path(__file__).with_name("comparison.md").resolve()
FIGURES = Path(__file__).parent / "proof" / "figures.json"

BEGINNING = "<!-- measured: drawn by `make fmt` from docs/proof/figures.json -->\n"
END = "<!-- measured: end -->\n"

SYSTEMS = ("Windlass", "Celery", "bare Dramatiq", "DBOS", "Procrastinate")
"""As their figures are labelled; the others were not measured."""

UNMEASURED = ("Hatchet", "Temporal")
NOT_MEASURED = "not measured"
ALONE = "{}"
WITH_KEEPER = "{}, and of what keeps it"
REASONS = {"Procrastinate": "; a periodic task of the bench looks every minute"}
"""Why a recovery takes as long as it does, where that is not the system's own choice."""

Figures = list[dict[str, Any]]


def comparison() -> str:
    before, begins, rest = COMPARISON.read_text().partition(BEGINNING)
    _, ends, after = rest.partition(END)
    assert begins, "comparison.md has lost its first mark"
    assert ends, "comparison.md has lost its last mark"
    return "".join((before, begins, *measured(), ends, after))


def measured() -> list[str]:
    contest = json.loads(FIGURES.read_text())["contest"]
    figures: Figures = contest["figures"]
    rows = {
        "no-op tasks per second": [_throughput(figures, each) for each in SYSTEMS],
        "from submit to start on an idle system, median": [_start(figures, each) for each in SYSTEMS],
        "after `kill -9` of its worker, a task runs again within": [_recovery(figures, each) for each in SYSTEMS],
    }
    said = (
        f"Measured on {contest['cores']} cores, {contest['date']}, each system at the best of several settings "
        "([how](proof.md#beside-the-others), [all figures](proof/tables.md)). "
        "Bare Dramatiq keeps no state."
    )
    head = ("measured", *SYSTEMS, *UNMEASURED)
    table = [_row(head), "|" + "---|" * len(head)]
    table += [_row((name, *cells, *(NOT_MEASURED for _ in UNMEASURED))) for name, cells in rows.items()]
    return [f"{line}\n" for line in (said, "", *table)]


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def _throughput(figures: Figures, system: str) -> str:
    found = _numbers(figures, "tasks_per_second", system)
    return f"{found[0]:,.0f}" if found else NOT_MEASURED


def _start(figures: Figures, system: str) -> str:
    """One that was measured with several ways to poll says from where to where."""
    found = sorted(_numbers(figures, "start_p50_ms", system))
    if not found:
        return NOT_MEASURED
    first, last = f"{found[0]:.0f}", f"{found[-1]:.0f}"
    return f"{first} ms" if len(found) == 1 else f"{first} to {last} ms, depending on how it polls"


def _recovery(figures: Figures, system: str) -> str:
    alone = _numbers(figures, "killed_to_running_seconds", system, exactly=ALONE)
    both = _numbers(figures, "killed_to_running_seconds", system, exactly=WITH_KEEPER)
    if not alone:
        return NOT_MEASURED
    return (
        f"{alone[0]:.1f} s"
        + (f"; {both[0]:.1f} s if its supervisor dies too" if both else "")
        + REASONS.get(system, "")
    )


def _numbers(figures: Figures, name: str, system: str, *, exactly: str = "") -> list[float]:
    """Of the figures that are labelled with the system's name, or as `exactly` says."""
    wanted = exactly.format(system)
    return [
        each["numbers"][name]
        for each in figures
        if name in each["numbers"]
        and (each["label"] == wanted if exactly else each["label"].partition(",")[0] == system)
    ]

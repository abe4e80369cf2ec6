"""Draws the states of projects' queues, runs and items."""

from pathlib import Path

from windlass.shared.project_states import ITEM, QUEUE, RUN, Change

PROJECT_STATES = Path(__file__).parent / "project_states.md"

HEAD = """\
# The life of a project's queue, as the code has it

Drawn from `shared/project_states.py` by `make fmt`; `make check` fails when this page is stale.
[Decision 0057](decisions/0057-run-queues.md) says why.
"""

PARTS = {
    "The queue": (QUEUE, "It is `stopping` until its run has ended, or, by force, until nothing of the run lives."),
    "A run": (RUN, "A project has one that is `running` at most. Who is revived is a new run."),
    "An item": (
        ITEM,
        "Bound to the open run it is shown as `running` once a worker has claimed its task; that is not stored.",
    ),
}


def project_states() -> str:
    return HEAD + "".join(_part(title, *part) for title, part in PARTS.items())


def _part(title: str, changes: dict[str, Change], said: str) -> str:
    return "\n".join(
        [
            "",
            f"## {title}",
            "",
            "```mermaid",
            "stateDiagram-v2",
            *_arrows(changes),
            "```",
            "",
            "| change | from | to | when |",
            "|---|---|---|---|",
            *(_row(change) for change in changes.values()),
            "",
            said,
            "",
        ]
    )


def _arrows(changes: dict[str, Change]) -> list[str]:
    arrows: dict[tuple[str, str], list[str]] = {}
    for change in changes.values():
        for source in change.sources or ("[*]",):
            arrows.setdefault((str(source), str(change.target)), []).append(change.name)
    return [f"    {source} --> {target}: {', '.join(names)}" for (source, target), names in arrows.items()]


def _row(change: Change) -> str:
    sources = ", ".join(f"`{state}`" for state in change.sources) or "nothing"
    return f"| {change.name} | {sources} | `{change.target}` | {change.when} |"

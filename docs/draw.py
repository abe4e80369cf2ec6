"""Draws the documents and the two modules that come from code, and what was measured where a page shows it; with
`--check` it fails when one of them is stale."""

import sys
from pathlib import Path

from docs.columns import COLUMNS, columns
from docs.comparison import COMPARISON, comparison
from docs.locks import LOCKS, locks
from docs.metrics import METRICS, metrics
from docs.project_states import PROJECT_STATES, project_states
from docs.proven import PROOF, proof
from docs.rows import ROWS, rows
from docs.settings import SETTINGS, settings
from docs.sizing import OPERATING, operating
from docs.walk import walked
from docs.workflow_states import WORKFLOW_STATES, workflow_states
from windlass.shared.states import LIVE, TERMINAL, TRANSITIONS, State, Transition

STATE_MACHINE = Path(__file__).parent / "state_machine.md"


def state_machine() -> str:
    return "\n".join(
        [
            "# The life of a task, as the code has it",
            "",
            "Drawn from `shared/states.py` by `make fmt`; `make check` fails when this page is stale.",
            "",
            "```mermaid",
            "stateDiagram-v2",
            *_arrows(),
            "```",
            "",
            "| transition | from | to | when |",
            "|---|---|---|---|",
            *(_row(transition) for transition in TRANSITIONS.values()),
            "",
            f"Live: {_words(LIVE)}. Terminal: {_words(TERMINAL)}.",
            "A task leaves `dead` and `cancelled` by `revive` only, and `completed` never.",
            "With a cancel requested, every way out of `running` but `complete` ends in `cancelled`.",
            "",
        ]
    )


def _arrows() -> list[str]:
    arrows: dict[tuple[str, str], list[str]] = {}
    for transition in TRANSITIONS.values():
        for source in transition.sources or ("[*]",):
            for target in transition.targets:
                arrows.setdefault((str(source), str(target)), []).append(transition.name)
    ends = [f"    {state} --> [*]" for state in (State.COMPLETED,)]
    return [f"    {source} --> {target}: {', '.join(names)}" for (source, target), names in arrows.items()] + ends


def _row(transition: Transition) -> str:
    sources = _words(transition.sources) or "nothing"
    return f"| {transition.name} | {sources} | {_words(transition.targets)} | {transition.when} |"


def _words(states: tuple[State, ...]) -> str:
    return ", ".join(f"`{state}`" for state in states)


def pages() -> dict[Path, str]:
    """Everything that is drawn, as it has to be, by its file."""
    drawn = {
        STATE_MACHINE: state_machine(),
        PROJECT_STATES: project_states(),
        WORKFLOW_STATES: workflow_states(),
        METRICS: metrics(),
        SETTINGS: settings(),
        ROWS: rows(),
        COLUMNS: columns(),
        LOCKS: locks(),
        COMPARISON: comparison(),
        OPERATING: operating(),
        PROOF: proof(),
    }
    found = {file.resolve(): text for file, text in drawn.items()}
    return found | walked(found)


def main() -> None:
    for file, drawn in pages().items():
        if "--check" not in sys.argv:
            file.write_text(drawn)
        elif not file.exists() or file.read_text() != drawn:
            sys.exit(f"{file.name} is stale: run `make fmt`")


if __name__ == "__main__":
    main()

"""Draws the states of a workflow, and what its status follows from."""

from pathlib import Path

from windlass.shared.workflow_states import CHANGES, Change, WorkflowStatus

WORKFLOW_STATES = Path(__file__).parent / "workflow_states.md"


def workflow_states() -> str:
    return "\n".join(
        [
            "# The states of a workflow, as the code has them",
            "",
            "Drawn from `shared/workflow_states.py` by `make fmt`; `make check` fails when this page is stale.",
            "",
            "```mermaid",
            "stateDiagram-v2",
            *(arrow for change in CHANGES for arrow in _arrows(change)),
            "```",
            "",
            "| change | from | to | when |",
            "|---|---|---|---|",
            *(f"| {each.name} | {_words(each.sources)} | {_words(each.targets)} | {each.when} |" for each in CHANGES),
            "",
            "The status is the first of these that holds: cancel requested and nothing live, `cancelled`; not",
            "requested and failures at the threshold, `escalated`; something live, `running`; something dead,",
            "`failed`; something cancelled, `cancelled`; else `completed`.",
            "[Decision 0093](decisions/0093-workflows-in-python.md) describes how tasks are counted.",
            "",
        ]
    )


def _arrows(change: Change) -> list[str]:
    return [
        f"    {source} --> {target}: {change.name}"
        for source in change.sources or ("[*]",)
        for target in change.targets
    ]


def _words(statuses: tuple[WorkflowStatus, ...]) -> str:
    return ", ".join(f"`{status}`" for status in statuses) or "nothing"

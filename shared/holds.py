"""Why a waiting task may be made to stand still: the reasons in `held`, and what `why` says of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from windlass.shared.reasons import Reason


class Hold(StrEnum):
    """One word for each who may hold a task; only the same takes it back."""

    WORKFLOW = "workflow"
    KEY = "key"
    ENDPOINT = "endpoint"


@dataclass(frozen=True)
class Said:
    reason: Reason
    message: str


SAID_OF = {
    Hold.WORKFLOW: Said(
        Reason.WORKFLOW_ESCALATED, "its workflow has failed too often and waits for somebody to resume or cancel it"
    ),
    Hold.KEY: Said(
        Reason.KEY_LIMIT, "as many tasks of its concurrency key run as may at once; it starts after one of them"
    ),
    Hold.ENDPOINT: Said(
        Reason.WAITING_FOR_TIME, "the endpoint that it delivers to does not answer; another delivery tries it first"
    ),
}

SAID_OF_ANOTHER = Said(Reason.WAITING_FOR_TIME, "a newer version of Windlass holds it, and says why")
"""Both run side by side during an upgrade."""


def said_of(held: Sequence[str]) -> Said:
    """Of several, the first in the order above: what a person may have to do comes first."""
    return next((SAID_OF[hold] for hold in Hold if hold in held), SAID_OF_ANOTHER)

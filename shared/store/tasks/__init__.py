"""A task's life, one function per intent, each one a single call that Postgres does whole or not at all."""

from windlass.shared.store.tasks.changing import cancel, hold, release, revive
from windlass.shared.store.tasks.claiming import (
    Ask,
    Claim,
    Claimed,
    Granted,
    Refused,
    claim,
    claim_next,
    next_alone,
    recall,
    unclaimable,
)
from windlass.shared.store.tasks.ending import Ending, Heard, Report, end, end_and_next, report
from windlass.shared.store.tasks.lookup import TASK_FIELDS, existing, get, owner_of
from windlass.shared.store.tasks.submitting import (
    KeyInFlight,
    KeyReused,
    ParentCancelled,
    Submission,
    UnknownDependency,
    WorkflowCancelled,
    submit,
    submit_batch,
    submit_keyed,
)
from windlass.shared.store.tasks.taking_back import expire, stall

__all__ = [
    "TASK_FIELDS",
    "Ask", "Claim", "Claimed", "Ending", "Granted", "Heard", "KeyInFlight", "KeyReused", "ParentCancelled", "Refused",
    "Report", "Submission", "UnknownDependency", "WorkflowCancelled",
    "cancel", "claim", "claim_next", "end", "end_and_next", "existing", "expire", "get", "hold", "next_alone",
    "owner_of", "recall", "release", "report", "revive", "stall", "submit", "submit_batch",
    "submit_keyed", "unclaimable",
]  # fmt: skip

"""A task's life, one function per intent, each one a single call that Postgres does whole or not at all."""

from windlass.shared.store.tasks.changing import cancel, hold, release, revive
from windlass.shared.store.tasks.claiming import TRACEPARENT, Claim, Claimed, Refused, claim, next_alone
from windlass.shared.store.tasks.ending import Ending, Heard, Report, end, report
from windlass.shared.store.tasks.lookup import TASK_FIELDS, existing, get, owner_of
from windlass.shared.store.tasks.submitting import (
    KeyInFlight,
    KeyReused,
    Submission,
    UnknownDependency,
    submit,
    submit_batch,
    submit_keyed,
)
from windlass.shared.store.tasks.taking_back import expire, seconds_to_next_expiry, stall

__all__ = [
    "TASK_FIELDS", "TRACEPARENT",
    "Claim", "Claimed", "Ending", "Heard", "KeyInFlight", "KeyReused", "Refused", "Report", "Submission",
    "UnknownDependency",
    "cancel", "claim", "end", "existing", "expire", "get", "hold", "next_alone", "owner_of", "release", "report",
    "revive", "seconds_to_next_expiry", "stall", "submit", "submit_batch", "submit_keyed",
]  # fmt: skip

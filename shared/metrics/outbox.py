"""What the features made of moves that they are subscribed to."""

from windlass.shared.metrics.declaring import API, ORCHESTRATOR, counter

HANDLED = counter(
    "windlass_outbox_handled_total",
    "Outbox rows handled by this process; an api handles pending rows before it answers",
    ["feature"],
    of=[API, ORCHESTRATOR],
)
FAILED = counter(
    "windlass_outbox_failed_total",
    "Failed attempts to handle the rows of a subject, which is tried again later",
    ["feature"],
    of=[API, ORCHESTRATOR],
)

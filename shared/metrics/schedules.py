"""What becomes of the times that schedules are due, counted by the process that decides: an orchestrator, or an api."""

from windlass.shared.metrics.declaring import API, ORCHESTRATOR, WAIT_SECONDS, counter, histogram

RUNS = counter(
    "windlass_schedule_runs_total",
    "Due times of schedules; `outcome` is started, waiting, skipped, missed or refused, `kind` what they start",
    ["kind", "outcome"],
    of=[API, ORCHESTRATOR],
)
LATE_SECONDS = histogram(
    "windlass_schedule_late_seconds",
    "From when a due time was to be started to when it was",
    ["kind"],
    buckets=WAIT_SECONDS,
    of=[ORCHESTRATOR],
)
FAILURES = counter(
    "windlass_schedule_failures_total",
    "Starts of schedules that were refused, or that ended dead or failed",
    [],
    of=[API, ORCHESTRATOR],
)

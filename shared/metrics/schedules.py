"""What becomes of the times that schedules are due, counted by who decides: the janitor, or an api that is asked."""

from windlass.shared.metrics.declaring import API, JANITOR, WAIT_SECONDS, counter, histogram

RUNS = counter(
    "windlass_schedule_runs_total",
    "Due times of schedules; `outcome` is started, waiting, skipped, missed or refused, `kind` what they start",
    ["kind", "outcome"],
    of=[API, JANITOR],
)
LATE_SECONDS = histogram(
    "windlass_schedule_late_seconds",
    "From when a due time was to be started to when it was",
    ["kind"],
    buckets=WAIT_SECONDS,
    of=[JANITOR],
)
FAILURES = counter(
    "windlass_schedule_failures_total",
    "Starts of schedules that were refused, or that ended dead or failed",
    [],
    of=[JANITOR],
)

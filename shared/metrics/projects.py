"""What becomes of projects' runs, counted by the janitor that writes it to its log."""

from windlass.shared.metrics.declaring import JANITOR, WORK_SECONDS, counter, histogram

RUNS = counter(
    "windlass_project_runs_total",
    "Runs that have ended; `end` is completed, dead, cancelled, withdrawn or lost",
    ["mode", "end"],
    of=[JANITOR],
)
RUN_SECONDS = histogram(
    "windlass_project_run_seconds",
    "From the start of a run to its end, with all its retries",
    ["mode", "end"],
    buckets=WORK_SECONDS,
    of=[JANITOR],
)
STOPS = counter(
    "windlass_project_stops_total",
    "Queues that came to a stand; `reason` is finished, stopped, forced or failed",
    ["reason"],
    of=[JANITOR],
)

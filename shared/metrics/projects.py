"""What becomes of projects' runs, counted by the process that commits it: an orchestrator, an api or a janitor."""

from windlass.shared.metrics.declaring import API, JANITOR, ORCHESTRATOR, WORK_SECONDS, counter, histogram

RUNS = counter(
    "windlass_project_runs_total",
    "Runs that have ended; `end` is completed, dead, cancelled, withdrawn or lost",
    ["mode", "end"],
    of=[API, JANITOR, ORCHESTRATOR],
)
RUN_SECONDS = histogram(
    "windlass_project_run_seconds",
    "From the start of a run to its end, with all its retries",
    ["mode", "end"],
    buckets=WORK_SECONDS,
    of=[API, JANITOR, ORCHESTRATOR],
)
STOPS = counter(
    "windlass_project_stops_total",
    "Queues that came to a stand; `reason` is finished, stopped, forced or failed",
    ["reason"],
    of=[API, JANITOR, ORCHESTRATOR],
)

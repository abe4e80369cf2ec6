"""What becomes of tasks: submitted, waited, run, ended. Counted by the process that did it, after it was committed."""

from windlass.shared.metrics.declaring import ACTORS, API, JANITOR, WAIT_SECONDS, WORK_SECONDS, counter, histogram

SUBMITTED = counter(
    "windlass_tasks_submitted_total",
    "Tasks accepted and stored; a submit that found its key taken is none",
    ["actor", "provider"],
    of=[API, ACTORS, JANITOR],
)
FINISHED = counter(
    "windlass_tasks_finished_total",
    "Tasks that came to an end: `outcome` is completed, dead or cancelled; `fault` is none, user, provider or system",
    ["actor", "provider", "outcome", "fault"],
    of=[ACTORS, API, JANITOR],
)
REVIVED = counter(
    "windlass_tasks_revived_total", "Dead or cancelled tasks brought back", ["actor", "provider"], of=[API]
)
QUEUE_WAIT_SECONDS = histogram(
    "windlass_task_queue_wait_seconds",
    "From the moment a task could start to its claim; `attempt` is first or later",
    ["actor", "provider", "attempt"],
    buckets=WAIT_SECONDS,
    of=[ACTORS],
)
RUN_SECONDS = histogram(
    "windlass_task_run_seconds",
    "From claim to end of one attempt",
    ["actor", "provider"],
    buckets=WORK_SECONDS,
    of=[ACTORS],
)
END_TO_END_SECONDS = histogram(
    "windlass_task_end_to_end_seconds",
    "From submit to completion, with everything between: dependencies, waiting, retries",
    ["actor", "provider"],
    buckets=WORK_SECONDS,
    of=[ACTORS],
)

ATTEMPTS_STARTED = counter("windlass_attempts_started_total", "Claims granted", ["actor", "provider"], of=[ACTORS])
ATTEMPTS_FINISHED = counter(
    "windlass_attempts_finished_total",
    "Attempts that ended: `outcome` is completed, retried, buried, cancelled, interrupted or lost (the lease was)",
    ["actor", "provider", "outcome"],
    of=[ACTORS],
)
ATTEMPT_ERRORS = counter(
    "windlass_attempt_errors_total",
    "Attempts that failed, by the error's type (`other` outside the vocabulary) and what followed: retried or buried",
    ["actor", "provider", "error_type", "next"],
    of=[ACTORS],
)
CLAIMS_REFUSED = counter(
    "windlass_claims_refused_total",
    "Claims of tasks that must run alone and were refused, and why, in the words of `why` and a few more",
    ["queue", "reason"],
    of=[ACTORS],
)
STALLS = counter(
    "windlass_stalls_total",
    "Running tasks taken back from a worker that died, froze or was cut off",
    ["actor", "provider"],
    of=[ACTORS, API, JANITOR],
)

"""The state of everything, read from Postgres when somebody asks. Every api says the same: take the `max` of them."""

from windlass.shared.metrics.declaring import API, gauge

DATABASE_ANSWERS = gauge(
    "windlass_database_answers",
    "1 when Postgres answered this reading; else the metrics of this part are left out",
    [],
    of=[API],
)
DATABASE_WRITABLE = gauge(
    "windlass_database_writable",
    "1 when Postgres has room on its disk and may be written to; 0 when every submit is refused",
    [],
    of=[API],
)
TASKS = gauge("windlass_tasks", "Tasks in each state, since the first day", ["actor", "provider", "status"], of=[API])
QUEUE_DEPTH = gauge(
    "windlass_queue_depth", "Tasks that could start now, by lane", ["queue", "actor", "provider", "lane"], of=[API]
)
QUEUE_SCHEDULED = gauge(
    "windlass_queue_scheduled", "Tasks that wait for their time", ["queue", "actor", "provider"], of=[API]
)
QUEUE_OLDEST_SECONDS = gauge(
    "windlass_queue_oldest_seconds",
    "How long the first of those that could start has waited; 0 when none waits",
    ["queue", "actor", "provider"],
    of=[API],
)
QUEUE_WORKERS = gauge(
    "windlass_queue_workers", "Workers that serve this queue", ["queue", "actor", "provider"], of=[API]
)
QUEUE_CAPACITY = gauge(
    "windlass_queue_capacity",
    "Places of the workers that serve this queue; a worker of many queues counts for each",
    ["queue", "actor", "provider"],
    of=[API],
)
SLOTS_HELD = gauge("windlass_provider_slots_held", "Slots of a provider in use", ["provider"], of=[API])
SLOTS_LIMIT = gauge(
    "windlass_provider_slots_limit",
    "How many slots a provider has; absent where there is no limit",
    ["provider"],
    of=[API],
)
BREAKER_STATE = gauge(
    "windlass_provider_breaker_state",
    "1 at the state that the breaker is in: closed, open or half_open",
    ["provider", "state"],
    of=[API],
)
PAUSED = gauge(
    "windlass_provider_paused",
    "1 while a provider rests; `by` is operator or provider (it asked us to wait)",
    ["provider", "by"],
    of=[API],
)
LEASE_AGE_SECONDS = gauge(
    "windlass_lease_age_seconds",
    "How long ago the running task that was renewed longest ago was renewed; 0 when none runs",
    ["provider"],
    of=[API],
)
UNACCOUNTED = gauge(
    "windlass_unaccounted_tasks", "Tasks that no part of the system is going to move: must be 0", [], of=[API]
)
ACTOR_VERSIONS = gauge(
    "windlass_actor_versions",
    "How many versions of an actor live workers run; 0 while nobody runs it",
    ["actor"],
    of=[API],
)
PROJECT_ORPHANS = gauge(
    "windlass_project_orphans",
    "Projects that are not idle, whose run has ended, and that have no pending outbox row about it. Must be 0",
    [],
    of=[API],
)
PROJECT_QUEUES = gauge(
    "windlass_project_queues",
    "Queues of projects that are not idle, by state: running or stopping",
    ["state"],
    of=[API],
)
PROJECT_STOPPING_SECONDS = gauge(
    "windlass_project_stopping_seconds",
    "How long ago the queue that has been stopping longest was asked to; `by` is stop or force. 0 when none is",
    ["by"],
    of=[API],
)
EMBEDDING_JOBS = gauge(
    "windlass_embedding_jobs",
    "Embedding jobs that are not done: waiting, or failed and to be retried",
    ["state"],
    of=[API],
)
UNGATHERED_SECONDS = gauge(
    "windlass_memory_ungathered_seconds",
    "How long the oldest event has waited to be gathered, and cannot be found yet; 0 when none does",
    [],
    of=[API],
)
OUTBOX_ROWS = gauge(
    "windlass_outbox_rows", "Moves of tasks that a feature has yet to handle, up to 100,000", ["feature"], of=[API]
)
OUTBOX_OLDEST_SECONDS = gauge(
    "windlass_outbox_oldest_seconds",
    "Age of the oldest move that a feature has yet to handle; 0 when there is none",
    ["feature"],
    of=[API],
)
WORKFLOW_DRIFT = gauge(
    "windlass_workflow_drift",
    "Workflows whose counts differed from their tasks at the last check, with no pending outbox row. Must be 0",
    [],
    of=[API],
)
ESCALATED_WORKFLOWS = gauge(
    "windlass_escalated_workflows", "Workflows that wait until a person resumes or cancels them", [], of=[API]
)
WEBHOOKS = gauge(
    "windlass_webhooks",
    "Endpoints, by state: enabled, failing, disabled or gone",
    ["state"],
    of=[API],
)
GIVEN_UP_WEBHOOKS = gauge(
    "windlass_given_up_webhooks",
    "Endpoints that are disabled because they failed for five days, and not by hand",
    [],
    of=[API],
)
WAITING_DELIVERIES = gauge(
    "windlass_webhook_waiting_deliveries",
    "Deliveries that are not delivered yet, by their endpoints' state; those of all states but enabled are held, but "
    "for the one that tries",
    ["state"],
    of=[API],
)
SCHEDULES = gauge(
    "windlass_schedules",
    "Schedules, by state: active or paused; `reason` is why: asked-for, failures or owner-has-no-key, else empty",
    ["state", "reason"],
    of=[API],
)
SCHEDULE_OVERDUE_SECONDS = gauge(
    "windlass_schedule_overdue_seconds",
    "How long ago the due time was to be started that nobody has decided about; 0 when there is none",
    [],
    of=[API],
)
OLDEST_APPROVAL_SECONDS = gauge(
    "windlass_oldest_approval_seconds",
    "How long the task that was asked about first has waited for a person's word; 0 when none waits",
    [],
    of=[API],
)

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
    "Threads of the workers that serve this queue; a worker of many queues counts for each",
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
UNTOLD = gauge(
    "windlass_untold_moves", "Moves of tasks that could not be told to whom they concern: must be 0", [], of=[API]
)

"""How each service itself is: requests, streams, dispatch, threads, duties, connections."""

from windlass.shared.metrics.declaring import (
    ACTORS,
    API,
    BATCH_SIZES,
    CALL_SECONDS,
    DISPATCHER,
    JANITOR,
    SERVICES,
    counter,
    gauge,
    histogram,
)

BUILD = gauge("windlass_build_info", "Always 1; which service and version this is", ["service", "version"], of=SERVICES)
DATABASE_CONNECTIONS = gauge(
    "windlass_database_connections", "Connections to Postgres; `state` is used or idle", ["state"], of=SERVICES
)
DATABASE_CONNECTIONS_LIMIT = gauge(
    "windlass_database_connections_limit", "How many connections this process may open", [], of=SERVICES
)

HTTP_REQUESTS = counter(
    "windlass_http_requests_total",
    "Requests answered; `route` is the path's pattern, `other` where none fits",
    ["method", "route", "status"],
    of=[API],
)
HTTP_REQUEST_SECONDS = histogram(
    "windlass_http_request_seconds",
    "From request to the end of its answer, or for a stream to its beginning",
    ["method", "route"],
    buckets=CALL_SECONDS,
    of=[API],
)
STREAM_CLIENTS = gauge("windlass_stream_clients", "Open streams; `kind` is task or many", ["kind"], of=[API])
STREAM_DELAY_SECONDS = histogram(
    "windlass_stream_delay_seconds",
    "From an event's commit to its sending, while the stream was following",
    ["kind"],
    buckets=CALL_SECONDS,
    of=[API],
)
STREAMS_CUT = counter(
    "windlass_streams_cut_total", "Streams ended because their client was too slow", ["kind"], of=[API]
)

DOORBELLS = counter(
    "windlass_doorbells_total",
    "Doorbells published; `result` is confirmed or missed",
    ["queue", "result"],
    of=[DISPATCHER],
)
DISPATCH_BATCH = histogram(
    "windlass_dispatch_batch_size", "Doorbells rung at once", [], buckets=BATCH_SIZES, of=[DISPATCHER]
)
DISPATCH_CONFIRM_SECONDS = histogram(
    "windlass_dispatch_confirm_seconds",
    "From publishing a batch to its last confirm",
    [],
    buckets=CALL_SECONDS,
    of=[DISPATCHER],
)
BROKER_CONNECTED = gauge(
    "windlass_broker_connected", "1 while the dispatcher is connected to RabbitMQ", [], of=[DISPATCHER]
)
BROKER_BLOCKED = gauge(
    "windlass_broker_blocked",
    "1 while RabbitMQ takes no messages from the dispatcher: its memory or its disk is nearly used up",
    [],
    of=[DISPATCHER],
)

WORKER_PLACES = gauge(
    "windlass_worker_places",
    "Places of this worker; `kind` is thread, or loop for `async def` actors, `state` busy or idle",
    ["kind", "state"],
    of=[ACTORS],
)
HEARTBEAT_AGE_SECONDS = gauge(
    "windlass_worker_heartbeat_age_seconds", "How long ago this worker last renewed its leases", [], of=[ACTORS]
)
WRITE_BATCH = histogram(
    "windlass_write_batch_size",
    "Claims, reports, ends or gathered steps of orders written in one transaction",
    ["what"],
    buckets=BATCH_SIZES,
    of=[ACTORS],
)

JANITOR_LAST_SUCCESS = gauge(
    "windlass_janitor_last_success_timestamp_seconds",
    "When a duty was last done to its end, or this janitor began; `rhythm` is leases, minute, hour or call, "
    "`duty` is stale, expired, approvals, dependents, keys, projects, endpoints, bulk, memory, vector_indexes, "
    "blocked, endpoints_check, workers, breakers, submission_keys, tallies, texts, reconciler, "
    "workflow_drift, questions, figures, statistics or tallies_check",
    ["duty", "rhythm"],
    of=[JANITOR],
)
JANITOR_DUTY_SECONDS = histogram(
    "windlass_janitor_duty_seconds",
    "How long a duty took, whether or not it failed",
    ["duty"],
    buckets=CALL_SECONDS,
    of=[JANITOR],
)
JANITOR_DUTY_FAILURES = counter(
    "windlass_janitor_duty_failures_total", "Times that a duty ended by an error", ["duty"], of=[JANITOR]
)
WORKERS_LOST = counter(
    "windlass_workers_lost_total", "Workers that fell silent without a good-bye", [], of=[ACTORS, JANITOR]
)

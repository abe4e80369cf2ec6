"""Every SQL statement, one function per intent."""

from windlass.shared.store import orders, tasks
from windlass.shared.store.access import audit, keys, secrets
from windlass.shared.store.flow_control import flow, providers, rates
from windlass.shared.store.operating import queues, reconciliation, reports, restoring, room, statistics, workers
from windlass.shared.store.reading import commit_order, dead_letters, events, listing, why
from windlass.shared.store.tasks import bulk, dependencies, submission_keys

__all__ = [
    "audit",
    "bulk",
    "commit_order",
    "dead_letters",
    "dependencies",
    "events",
    "flow",
    "keys",
    "listing",
    "orders",
    "providers",
    "queues",
    "rates",
    "reconciliation",
    "reports",
    "restoring",
    "room",
    "secrets",
    "statistics",
    "submission_keys",
    "tasks",
    "why",
    "workers",
]

"""Every SQL statement, one function per intent."""

from shared.store import events, keys, listing, providers, reconciliation, reports, statistics, tasks, workers

__all__ = ["events", "keys", "listing", "providers", "reconciliation", "reports", "statistics", "tasks", "workers"]

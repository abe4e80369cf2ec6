"""Every SQL statement, one function per intent."""

from shared.store import events, keys, providers, reports, tasks, workers

__all__ = ["events", "keys", "providers", "reports", "tasks", "workers"]

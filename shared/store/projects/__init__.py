"""Projects as they are read: queues, backlogs, runs and histories. `shared/features/projects` changes them."""

from windlass.shared.store.projects.reading import (
    EVENT_NAMES,
    ItemRead,
    RunRead,
    Status,
    events,
    get,
    item,
    items,
    newest,
    run,
    runs,
    some_items,
)

CHANNEL = "windlass_projects"
"""Notified when a project is force-stopped: the janitor waits for the proof."""

__all__ = [
    "CHANNEL", "EVENT_NAMES",
    "ItemRead", "RunRead", "Status",
    "events", "get", "item", "items", "newest", "run", "runs", "some_items",
]  # fmt: skip

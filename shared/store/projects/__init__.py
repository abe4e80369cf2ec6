"""Projects: their queues, backlogs and runs, one function per intent, each a single call that Postgres does whole."""

from windlass.shared.store.projects.backlog import add, change, delete, requeue, skip
from windlass.shared.store.projects.queues import (
    CHANNEL,
    Created,
    NewProject,
    Started,
    alter,
    archive,
    cancel_descendants,
    create,
    force_stop,
    prove_stopped,
    start,
    stop,
)
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
    several,
    some_items,
)

__all__ = [
    "CHANNEL", "EVENT_NAMES",
    "Created", "ItemRead", "NewProject", "RunRead", "Started", "Status",
    "add", "alter", "archive", "cancel_descendants", "change", "create", "delete", "events", "force_stop", "get",
    "item", "items", "newest", "prove_stopped", "requeue", "run", "runs", "several", "skip",
    "some_items", "start", "stop",
]  # fmt: skip

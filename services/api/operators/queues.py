"""The queues at this moment: what waits, what runs, and who serves them."""

from typing import Any

from litestar import get
from litestar.datastructures import State

from windlass.services.api.tasks.handlers import Asked
from windlass.shared.store.operating.queues import QueueStatus
from windlass.shared.toml_tables import LaneSettings

TOTALLED = ("fresh", "retry", "scheduled", "blocked", "running", "dead")


@get("/queues/status")
async def queue_status(request: Asked, state: State) -> dict[str, Any]:
    """Every queue, and how many tasks are in each state; a user's key sees the figures of its own tasks.

    `fresh` and `retry` could start now, `scheduled` wait for their time; `oldest_age_seconds` is how long the first of
    those that could start has waited; `ended` is how many have come to an end, since ever; `retry_ratio` is the share
    of the starts that retries get while both lanes wait. Where thousands are due and thousands are scheduled in one
    queue, the figures may be a second old. Queues that no configuration names any more, without live tasks, workers
    or any use for a day, are left out.
    """
    rows, states = await state.queue_figures.of(request.user.own)
    lanes, shown = state.settings.lanes, state.registry.shown
    return {
        "queues": [
            queue_document(row, lanes)
            for row in rows
            if row.queue is not None and (shown is None or shown.has_queue(row))
        ],
        "totals": {name: sum(row[name] for row in rows) for name in TOTALLED},
        "states": states,
        "retry_ratio": lanes.retry_share(sum(row.retry for row in rows)) / 100,
    }


def queue_document(row: QueueStatus, lanes: LaneSettings) -> dict[str, Any]:
    names = ("queue", "actor", "provider", "fresh", "retry", "scheduled", "blocked", "running", "dead", "workers")
    return {
        **{name: row[name] for name in names},
        "oldest_age_seconds": row.oldest_age_seconds,
        "ended": row.completed + row.dead + row.cancelled,
        "retry_ratio": lanes.retry_share(row.retry) / 100,
    }


HANDLERS = [queue_status]

"""Every handler under `/api/v1`."""

from services.api import (
    audit,
    bulk,
    callbacks,
    dead_letters,
    history,
    keys,
    listing,
    media,
    providers,
    queues,
    stats,
    tasks,
    why,
    workers,
)

ROUTES = [
    *tasks.HANDLERS,
    *listing.HANDLERS,
    *history.HANDLERS,
    *why.HANDLERS,
    *bulk.HANDLERS,
    *media.HANDLERS,
    *callbacks.HANDLERS,
    *queues.HANDLERS,
    *dead_letters.HANDLERS,
    *providers.HANDLERS,
    *workers.HANDLERS,
    *stats.HANDLERS,
    *keys.HANDLERS,
    *audit.HANDLERS,
]

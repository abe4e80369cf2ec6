"""Every handler under `/api/v1`."""

from windlass.services.api.access import audit, keys, sessions
from windlass.services.api.actors import handlers as actors
from windlass.services.api.media import callbacks, uploads
from windlass.services.api.media import handlers as media
from windlass.services.api.operators import overview, providers, queues, stats, workers
from windlass.services.api.streams import handlers as history
from windlass.services.api.tasks import bulk, dead_letters, listing, why
from windlass.services.api.tasks import handlers as tasks

ROUTES = [
    *tasks.HANDLERS,
    *actors.HANDLERS,
    *listing.HANDLERS,
    *history.HANDLERS,
    *why.HANDLERS,
    *bulk.HANDLERS,
    *media.HANDLERS,
    *uploads.HANDLERS,
    *callbacks.HANDLERS,
    *overview.HANDLERS,
    *queues.HANDLERS,
    *dead_letters.HANDLERS,
    *providers.HANDLERS,
    *workers.HANDLERS,
    *stats.HANDLERS,
    *sessions.HANDLERS,
    *keys.HANDLERS,
    *audit.HANDLERS,
]

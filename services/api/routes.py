"""Every handler under `/api/v1`."""

from windlass.services.api.access import audit, keys, sessions
from windlass.services.api.actors import handlers as actors
from windlass.services.api.media import callbacks, uploads
from windlass.services.api.media import handlers as media
from windlass.services.api.memory import events as agent_events
from windlass.services.api.memory import models as embedding_models
from windlass.services.api.memory import search as memory_search
from windlass.services.api.operators import overview, providers, queues, stats, workers
from windlass.services.api.projects import handlers as projects
from windlass.services.api.projects import history as project_history
from windlass.services.api.projects import items as project_items
from windlass.services.api.projects import queue as project_queue
from windlass.services.api.schedules import handlers as schedules
from windlass.services.api.schedules import runs as schedule_runs
from windlass.services.api.streams import handlers as history
from windlass.services.api.tasks import bulk, dead_letters, listing, why
from windlass.services.api.tasks import handlers as tasks
from windlass.services.api.webhooks import deliveries
from windlass.services.api.webhooks import handlers as webhooks
from windlass.services.api.workflows import approvals
from windlass.services.api.workflows import handlers as workflows

ROUTES = [
    *tasks.HANDLERS,
    *actors.HANDLERS,
    *listing.HANDLERS,
    *history.HANDLERS,
    *why.HANDLERS,
    *bulk.HANDLERS,
    *projects.HANDLERS,
    *project_items.HANDLERS,
    *project_queue.HANDLERS,
    *project_history.HANDLERS,
    *workflows.HANDLERS,
    *approvals.HANDLERS,
    *agent_events.HANDLERS,
    *memory_search.HANDLERS,
    *embedding_models.HANDLERS,
    *webhooks.HANDLERS,
    *deliveries.HANDLERS,
    *schedules.HANDLERS,
    *schedule_runs.HANDLERS,
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

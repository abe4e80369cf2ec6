"""Workers that run versions of actors, as far as rows say so."""

from tests.support.engine.store import Engine
from windlass.shared.actors.definition import Definition
from windlass.shared.db import as_json
from windlass.shared.settings import queue_name
from windlass.shared.store.operating import registry, workers


async def comes(engine: Engine, worker_id: str, definition: Definition) -> None:
    """A worker that runs this version, as one registers itself."""
    await registry.announce(engine.pool, [definition])
    queue = queue_name(definition.name, definition.provider or definition.name)
    await workers.register(engine.pool, worker_id, hostname="h", pid=1, queues=[queue], capacity=1)
    versions = {definition.name: definition.version}
    statement = "UPDATE workers SET actor_versions = $2::text::jsonb WHERE worker_id = $1"
    await engine.pool.execute(statement, worker_id, as_json(versions))

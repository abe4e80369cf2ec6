"""Workers that run versions of actors, as far as rows say so."""

from tests.support.engine.store import Engine
from windlass.shared.actors.definition import Definition
from windlass.shared.settings import queue_name
from windlass.shared.store.operating import registry, workers


async def comes(engine: Engine, worker_id: str, definition: Definition) -> None:
    """A worker that runs this version, as one registers itself."""
    await registry.announce(engine.pool, [definition])
    queue = queue_name(definition.name, definition.provider or definition.name)
    versions = {definition.name: definition.version}
    await workers.register(
        engine.pool, worker_id, hostname="h", pid=1, queues=[queue], capacity=1, actor_versions=versions
    )

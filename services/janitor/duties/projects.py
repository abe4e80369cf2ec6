"""Projects that are being force-stopped. The call that asked for it may have given up."""

from uuid import UUID

from windlass.services.janitor.rhythms import UNTIL_CALLED
from windlass.shared.db import CONTENDED, Database
from windlass.shared.features.projects import operations
from windlass.shared.store.projects import looking_after

AGAIN_SECONDS = 0.5
"""While something that is to be stopped is alive, and after a lock timeout."""


async def look_after_projects(db: Database) -> float:
    """Returns how long to wait for the next look."""
    try:
        proven = [await _stop(db, project_id) for project_id in await looking_after.unproven(db)]
    except CONTENDED:
        return AGAIN_SECONDS
    return UNTIL_CALLED if all(proven) else AGAIN_SECONDS


async def _stop(db: Database, project_id: UUID) -> bool:
    await operations.cancel_descendants(db, project_id)
    return await operations.prove_stopped(db, project_id)

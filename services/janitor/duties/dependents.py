"""Dependents: those that the end or the revival of their parent has left are told page by page."""

from windlass.services.janitor.rhythms import UNTIL_CALLED
from windlass.shared import db
from windlass.shared.store.tasks import dependencies

AGAIN_SECONDS = 0.1
"""When somebody was in the way."""

CHANNEL = "windlass_settle"


async def settle_dependents(connection: db.Database) -> float:
    """Until there are none; returns how long to wait for the next."""
    try:
        while await dependencies.settle_next(connection):
            pass
    except db.CONTENDED:
        return AGAIN_SECONDS
    return UNTIL_CALLED

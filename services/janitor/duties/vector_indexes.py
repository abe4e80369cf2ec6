"""Indexes of vectors, where Postgres has pgvector: made once there are many events, and dropped with their models."""

import logging

from windlass.shared import db
from windlass.shared.errors import words_of
from windlass.shared.settings import Settings
from windlass.shared.store.memory import indexing

log = logging.getLogger("janitor")

LOOK_SECONDS = 60.0
AGAIN_SECONDS = 3600.0
"""After one could not be made: nothing depends on it."""


async def look_after_indexes(pool: db.Database, settings: Settings) -> float:
    """Returns how long to wait for the next time. Without one, vectors are compared one by one: what cannot be made is
    said and left."""
    if not await indexing.missing(pool) and not await indexing.left_over(pool):
        return LOOK_SECONDS
    connection = await db.connect_without_timeouts(settings, "janitor-index")
    try:
        if await indexing.begin(connection):
            await _make_all(connection)
    except db.AWAY_OR_BUSY:
        raise
    except indexing.REFUSED as error:
        log.warning("no index of vectors can be made, they are compared one by one: %s", words_of(error))
        return AGAIN_SECONDS
    finally:
        connection.terminate()
    return LOOK_SECONDS


async def _make_all(connection: db.Connection) -> None:
    """What is left over first, for a new one may bear its name."""
    for name in await indexing.left_over(connection):
        await indexing.drop(connection, name)
        log.info("dropped the index %s", name)
    for wanted in await indexing.missing(connection):
        await indexing.make(connection, **dict(wanted))
        log.info("made the index %s", wanted.name)

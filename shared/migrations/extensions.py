"""What the server has to offer beyond Postgres itself: pgvector, which memory uses where it is and does without."""

import logging

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

log = logging.getLogger(__name__)

IS_OFFERED = text("SELECT 1 FROM pg_available_extensions WHERE name = 'vector' AND installed_version IS NULL")


def make_offered(connection: Connection) -> None:
    """Whoever may not make it is told who has to; nothing else waits for that."""
    if connection.scalar(IS_OFFERED) is None:
        return
    try:
        with connection.begin_nested():
            connection.exec_driver_sql("CREATE EXTENSION vector")
    except DBAPIError as error:
        log.warning("pgvector is not used until somebody who may has said CREATE EXTENSION vector: %s", error.orig)
    else:
        log.info("made the extension vector: with many events, memory is searched by an index")

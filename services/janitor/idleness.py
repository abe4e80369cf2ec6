"""Which duties would find nothing: asked for all at once, so that a janitor with nothing to do hardly asks at all."""

import logging
from collections.abc import Iterable

from windlass.services.janitor.premises import Premises
from windlass.services.janitor.table import Duty
from windlass.services.janitor.wall import found_idle
from windlass.shared import db
from windlass.shared.errors import words_of
from windlass.shared.store.operating import looks
from windlass.shared.store.operating.looks import Look

log = logging.getLogger("janitor")


async def look_around(at: Premises) -> Look:
    """What there is to do and to wait for. Where that cannot be said, for something is not as it should be, every duty
    finds out for itself, behind its own wall."""
    try:
        return await looks.look(at.pool)
    except db.AWAY_OR_BUSY:
        raise
    except Exception as error:  # noqa: BLE001 - said here, and told by the duty that it keeps from its work
        log.warning("which duties have something to do cannot be said, all of them are done (%s)", words_of(error))
        return await looks.look(at.pool, for_duties=False)


def busy(duties: Iterable[Duty], look: Look) -> list[Duty]:
    """Those that have something to do, as far as anybody knows."""
    found = []
    for duty in duties:
        if duty.name in look.idle:
            found_idle(duty)
        else:
            found.append(duty)
    return found

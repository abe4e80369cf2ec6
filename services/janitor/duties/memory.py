"""Memory: new events are gathered into embedding jobs, new models catch up, and old questions are forgotten."""

import logging

from windlass.services.janitor.rhythms import UNTIL_CALLED
from windlass.shared.db import Database
from windlass.shared.settings import Settings
from windlass.shared.store.memory import jobs, models, questions

log = logging.getLogger("janitor")


async def gather_memory(db: Database, settings: Settings) -> float:
    """Returns how long to wait for the next; a model that catches up is looked after as often as events are gathered.
    Whether one has is asked first: the jobs of the time before are done, and the new ones not yet filed."""
    if (activated := await models.activate_filled(db)) is not None:
        log.info("the embedding model %s is filled, and active from now on", activated)
    again_seconds = await jobs.gather(db, longest_seconds=settings.memory_gather_seconds)
    await jobs.backfill(db)
    return again_seconds if await jobs.is_memory_waiting(db) else UNTIL_CALLED


async def forget_questions(db: Database) -> None:
    await questions.forget(db)

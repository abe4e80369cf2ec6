"""`windlass actors register`: writes what the actors take into Postgres: tasks are checked by it from now on."""

import argparse
import asyncio
import logging
import sys

from windlass.services.admin.loading import Found, find
from windlass.services.admin.schedules import declare
from windlass.shared import db
from windlass.shared.process import logs
from windlass.shared.scrubbing import scrub
from windlass.shared.settings import Settings
from windlass.shared.settings.loading import settings_or_exit
from windlass.shared.store.operating import registry

log = logging.getLogger("register")


async def register(settings: Settings) -> Found:
    """What can be: one that is broken is left as it was registered before, and complained of."""
    found = find(settings)
    pool = await db.open_pool(settings, "register", most=1)
    try:
        await db.until_available("register", lambda: registry.register(pool, found.definitions))
        wrong = await declare(pool, settings, found)
    finally:
        pool.terminate()
    log.info("registered: %s", ", ".join(sorted(each.name for each in found.definitions)))
    found = Found(found.definitions, [*found.mistakes, *wrong])
    for mistake in found.mistakes:
        log.error("%s", mistake)
    return found


def main() -> int:
    argparse.ArgumentParser(prog="windlass actors register", description=__doc__).parse_args()
    settings = settings_or_exit("database_url")
    logs.start(settings, "register")
    try:
        found = asyncio.run(register(settings))
    except db.NOT_MIGRATED:
        print(scrub("windlass: there are no tables yet: run `windlass migrate` first"), file=sys.stderr)
        return 1
    return 1 if found.mistakes else 0


if __name__ == "__main__":
    sys.exit(main())

"""`windlass migrate`: waits for Postgres, migrates it, and says to what; with `--wait`, waits until somebody has."""

import argparse
import asyncio
import logging

from windlass.services.admin.register import register
from windlass.shared import db
from windlass.shared.errors import words_of
from windlass.shared.migrations.fence import OlderWorkersAlive
from windlass.shared.migrations.runner import migrate, newest_revision
from windlass.shared.process import logs
from windlass.shared.process.lifetime import until_told_to_stop
from windlass.shared.settings import Settings
from windlass.shared.settings.loading import settings_or_exit
from windlass.shared.store.operating import reports

log = logging.getLogger("migrate")

LOOK_SECONDS = 0.5
TOLD_TO_STOP = 143
"""As a shell says that SIGTERM ended a program: whoever waits for the schema must not take it for the schema's being
there."""


async def bring_up(settings: Settings, *, registering: bool = False, force: bool = False) -> None:
    url = db.direct_url(settings)

    async def once() -> None:
        revision = await migrate(url, force=force)
        log.info("the schema is at revision %s; this version's is %s", revision, newest_revision())

    await db.until_available("migrate", once)
    if registering:
        await register(settings)  # what is wrong with one of them is told, and keeps nobody from the new schema


async def wait_for_the_schema(settings: Settings) -> None:
    """Until its tables are as new as this version's, or newer, and this version's own functions are there."""
    pool = await db.open_pool(settings, "migrate", most=1)
    needed, seen = newest_revision(), None

    async def look() -> None:
        nonlocal seen
        found = await reports.schema(pool)
        if found != seen:
            functions = "there" if found.has_functions else "missing"
            log.info(
                "the schema is at revision %s, and this version's functions are %s; this version needs %s",
                found.revision or "none",
                functions,
                needed,
            )
        seen = found

    while seen is None or not seen.serves(needed):
        if seen is not None:
            await asyncio.sleep(LOOK_SECONDS)
        await db.until_available("migrate", look)
    await pool.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="windlass migrate", description=__doc__)
    parser.add_argument("--wait", action="store_true", help="change nothing")
    parser.add_argument("--register", action="store_true", help="and register the actors")
    parser.add_argument(
        "--force", action="store_true", help="migrate although workers of an earlier edition are running"
    )
    wanted = parser.parse_args()
    settings = settings_or_exit("database_url")
    logs.start(settings, "migrate")
    work = (
        wait_for_the_schema(settings)
        if wanted.wait
        else bring_up(settings, registering=wanted.register, force=wanted.force)
    )
    try:
        return 0 if asyncio.run(until_told_to_stop(work)) else TOLD_TO_STOP
    except OlderWorkersAlive as error:
        log.error("migration_refused error=%s", words_of(error))  # noqa: TRY400 - the message says it all
        return 1


if __name__ == "__main__":
    raise SystemExit(main())

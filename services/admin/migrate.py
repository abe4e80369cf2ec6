"""`windlass migrate`: waits for Postgres, migrates it, and says to what; with `--wait`, waits until somebody has."""

import argparse
import asyncio
import logging

from windlass.shared import db
from windlass.shared.migrations.runner import migrate, newest_revision
from windlass.shared.process import logs
from windlass.shared.process.lifetime import until_told_to_stop
from windlass.shared.settings import Settings
from windlass.shared.store.operating import reports

log = logging.getLogger("migrate")

LOOK_SECONDS = 0.5
TOLD_TO_STOP = 143
"""As a shell says that SIGTERM ended a program: whoever waits for the schema must not take it for the schema's being
there."""


async def bring_to_the_newest(settings: Settings) -> None:
    url = db.direct_url(settings)

    async def once() -> None:
        log.info("the schema is at revision %s; this version's is %s", await migrate(url), newest_revision())

    await db.until_available("migrate", once)


async def wait_for_the_schema(settings: Settings) -> None:
    """Until it is as new as this version, or newer: old and new processes run side by side during an upgrade."""
    pool = await db.open_pool(settings, "migrate", most=1)
    needed, seen = newest_revision(), "unknown"

    async def look() -> None:
        nonlocal seen
        found = await reports.schema_revision(pool) or "none"
        if found != seen:
            log.info("the schema is at revision %s; this version needs %s", found, needed)
        seen = found

    while seen in {"unknown", "none"} or seen < needed:
        await db.until_available("migrate", look)
        await asyncio.sleep(0 if seen >= needed else LOOK_SECONDS)
    await pool.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="windlass migrate", description=__doc__)
    parser.add_argument("--wait", action="store_true", help="change nothing")
    wanted = parser.parse_args()
    settings = Settings()
    logs.start(settings, "migrate")
    work = wait_for_the_schema(settings) if wanted.wait else bring_to_the_newest(settings)
    return 0 if asyncio.run(until_told_to_stop(work)) else TOLD_TO_STOP


if __name__ == "__main__":
    raise SystemExit(main())

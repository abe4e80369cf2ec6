"""`windlass migrate`: waits for Postgres, migrates it, and says to what."""

import asyncio

from shared import db, logs
from shared.migrations.runner import migrate, newest_revision
from shared.settings import Settings


async def main() -> None:
    settings = Settings()
    log = logs.start(settings, "migrate")
    url = db.required_url(settings)
    await db.until_available("migrate", lambda: migrate(url))
    log.info("the schema is at revision %s", newest_revision())


if __name__ == "__main__":
    asyncio.run(main())

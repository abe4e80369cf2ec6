"""`windlass keys create --bootstrap`: the first key, written straight into the database of a new installation."""

import argparse
import asyncio
import sys

from windlass.shared import db
from windlass.shared.errors import words_of
from windlass.shared.process import logs
from windlass.shared.scrubbing import scrub
from windlass.shared.settings import Settings
from windlass.shared.settings.loading import settings_or_exit
from windlass.shared.store.access import keys

BY = "bootstrap"
ALREADY = (
    "there is an admin's key already: make more with it (`windlass keys create`, POST /api/v1/keys). "
    "If it is lost, start the api with another one in WINDLASS_API_KEY"
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="windlass keys create", description=__doc__)
    parser.add_argument("--bootstrap", action="store_true", required=True, help="only while no admin's key is alive")
    parser.add_argument("--role", choices=["admin", "user", "viewer"], default="admin")
    parser.add_argument("--user", default="admin", help="whose key it is")
    wanted = parser.parse_args()
    settings = settings_or_exit("database_url")
    logs.start(settings, "keys")
    try:
        key = asyncio.run(create(settings, role=wanted.role, user_id=wanted.user))
    except db.AWAY_OR_BUSY as error:
        print(scrub(f"windlass: Postgres cannot be reached: {words_of(error)}"), file=sys.stderr)
        return 1
    except db.NOT_MIGRATED:
        print("windlass: there are no tables yet: run `windlass migrate` first", file=sys.stderr)
        return 1
    if key is None:
        print(f"windlass: {ALREADY}", file=sys.stderr)
        return 1
    print("windlass: this is the only time that it is shown", file=sys.stderr)
    print(key)
    return 0


async def create(settings: Settings, *, role: str, user_id: str) -> str | None:
    """The key, or none when it would not be the first one."""
    pool = await db.open_pool(settings, "keys", most=1)
    try:
        key = keys.new_key()
        row = await keys.create_first(pool, key, role=role, user_id=user_id, created_by=BY)
        return None if row is None else key
    finally:
        pool.terminate()


if __name__ == "__main__":
    sys.exit(main())

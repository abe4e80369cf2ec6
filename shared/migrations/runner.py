"""Brings a database to the newest schema: Alembic's revisions for the tables, and this build's own functions."""

from functools import partial
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine

from windlass.shared.migrations import extensions, sets


def alembic_config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("path_separator", "os")
    return config


def newest_revision() -> str:
    head = ScriptDirectory.from_config(alembic_config()).get_current_head()
    assert head is not None
    return head


async def migrate(database_url: str, *, force: bool = False) -> str:
    """One transaction under an advisory lock: several may start at once, and one that fails leaves nothing behind.

    Returns the schema's revision. Tables that are newer than ours are left alone: while a release is rolled out or
    back, programs of two versions start. Our own functions are made on them all the same.

    Raises OlderWorkersAlive if a step does not roll and workers of the edition before are running, unless forced.
    """
    engine = create_async_engine(database_url.replace("postgresql://", "postgresql+asyncpg://", 1))
    try:
        async with engine.begin() as connection:
            await connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('windlass migrate'))"))
            found = await connection.run_sync(_current_revision)
            is_newer = found is not None and found > newest_revision()
            if not is_newer:
                await connection.run_sync(partial(_upgrade_tables, force=force))
            await connection.run_sync(extensions.make_offered)
            await connection.run_sync(sets.make_own)
            await connection.run_sync(sets.drop_old)
            return found if found is not None and is_newer else newest_revision()
    finally:
        await engine.dispose()


def _current_revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _upgrade_tables(connection: Connection, *, force: bool) -> None:
    config = alembic_config()
    config.attributes.update(connection=connection, force=force)
    command.upgrade(config, "head")

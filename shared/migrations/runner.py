"""Brings a database to the newest schema: Alembic's revisions for the tables, then the functions as they are now."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine

from windlass.shared.store import functions


def alembic_config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("path_separator", "os")
    return config


def newest_revision() -> str:
    head = ScriptDirectory.from_config(alembic_config()).get_current_head()
    assert head is not None
    return head


async def migrate(database_url: str) -> str:
    """One transaction under an advisory lock: several may start at once, and one that fails leaves nothing behind.

    Returns the schema's revision. One that is newer than ours is left alone: while a release is rolled out or back,
    programs of two versions start.
    """
    engine = create_async_engine(database_url.replace("postgresql://", "postgresql+asyncpg://", 1))
    try:
        async with engine.begin() as connection:
            await connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('windlass migrate'))"))
            found = await connection.run_sync(_current_revision)
            if found is not None and found > newest_revision():
                return found
            await connection.run_sync(_upgrade_tables)
            await connection.run_sync(install_functions)
            return newest_revision()
    finally:
        await engine.dispose()


def _current_revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _upgrade_tables(connection: Connection) -> None:
    config = alembic_config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def install_functions(connection: Connection) -> None:
    for name in functions.names():
        connection.exec_driver_sql(f"DROP FUNCTION IF EXISTS {name}")
    for definition in functions.definitions():
        for statement in functions.split(definition):
            connection.exec_driver_sql(statement)

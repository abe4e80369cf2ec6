"""Brings a database to the newest schema: Alembic's revisions for the tables, then the functions as they are now."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine

from shared.store import functions


def alembic_config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("path_separator", "os")
    return config


def newest_revision() -> str:
    head = ScriptDirectory.from_config(alembic_config()).get_current_head()
    assert head is not None
    return head


async def migrate(database_url: str) -> None:
    """One transaction under an advisory lock: several may start at once, and one that fails leaves nothing behind."""
    engine = create_async_engine(database_url.replace("postgresql://", "postgresql+asyncpg://", 1))
    try:
        async with engine.begin() as connection:
            await connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('windlass migrate'))"))
            await connection.run_sync(_upgrade_tables)
            await connection.run_sync(install_functions)
    finally:
        await engine.dispose()


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

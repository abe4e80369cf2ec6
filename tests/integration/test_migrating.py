"""`windlass migrate` as jobs and waiting containers use it: newer schemas are left alone, older ones waited for."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.installation import leash
from tests.support.servers.databases import PROJECT, ask, execute, migrate
from tests.support.waiting import wait_until
from windlass.services.laptop.ports import free_port
from windlass.shared import db
from windlass.shared.migrations.runner import newest_revision
from windlass.shared.settings import Settings
from windlass.shared.store.functions import named, schema

NEWER = "9999"
LATEST_LOOK = """
    SELECT query_start FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'windlass-migrate %'
"""


@contextmanager
def waiting_for(database_url: str, log: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "WINDLASS_DATABASE_URL": database_url}
    command = [*leash(), sys.executable, "-m", "windlass.services.admin.migrate", *options]
    with log.open("wb") as stderr, subprocess.Popen(command, cwd=PROJECT, env=environment, stderr=stderr) as process:
        try:
            yield process
        finally:
            process.kill()


def test_waiting_ends_when_somebody_has_migrated(empty_database_url: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with waiting_for(empty_database_url, log, "--wait") as process:
        wait_until("it has looked", lambda: "the schema is at revision none" in log.read_text())
        assert process.poll() is None
        migrate(empty_database_url)
        assert process.wait(60) == 0


def test_an_older_schema_is_not_enough_and_a_newer_one_is(database_url: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    execute(database_url, "UPDATE alembic_version SET version_num = '0001'")
    with waiting_for(database_url, log, "--wait") as process:
        wait_until("it has looked", lambda: "the schema is at revision 0001" in log.read_text())
        assert process.poll() is None
        execute(database_url, f"UPDATE alembic_version SET version_num = '{NEWER}'")
        assert process.wait(60) == 0


def test_the_tables_are_not_enough_without_our_functions(database_url: str, tmp_path: Path) -> None:
    """New processes never start on what an older build's `migrate` has left."""
    log = tmp_path / "log"
    execute(database_url, f"DROP SCHEMA {schema()} CASCADE")
    with waiting_for(database_url, log, "--wait") as process:
        wait_until("it has looked", lambda: "this version's functions are missing" in log.read_text())
        looked = ask(database_url, LATEST_LOOK)
        wait_until("it looks again", lambda: (again := ask(database_url, LATEST_LOOK)) and again != looked)
        assert process.poll() is None
        migrate(database_url)
        assert process.wait(60) == 0


def test_newer_tables_are_left_as_they_are_and_get_our_functions(database_url: str) -> None:
    """A release that is rolled back starts the older program on the newer schema."""
    execute(database_url, f"UPDATE alembic_version SET version_num = '{NEWER}'")
    execute(database_url, f"DROP SCHEMA {schema()} CASCADE")
    migrate(database_url)
    ((revision,),) = ask(database_url, "SELECT version_num FROM alembic_version")
    assert revision == NEWER > newest_revision()
    ask(database_url, f"SELECT {named('wake_dispatcher')}()")


@pytest.mark.parametrize("options", [(), ("--wait",)])
def test_told_to_stop_it_does_not_look_as_if_it_were_done(tmp_path: Path, options: tuple[str, ...]) -> None:
    log = tmp_path / "log"
    nowhere = f"postgresql://nobody@127.0.0.1:{free_port()}/nothing"
    with waiting_for(nowhere, log, *options) as process:
        wait_until("it waits", lambda: "waiting for Postgres" in log.read_text())
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143


def test_migrations_and_listening_go_past_a_pooler(empty_database_url: str) -> None:
    environment = {
        **os.environ,
        "WINDLASS_DATABASE_URL": f"postgresql://nobody@127.0.0.1:{free_port()}/nothing",
        "WINDLASS_DATABASE_DIRECT_URL": empty_database_url,
    }
    subprocess.run(
        [sys.executable, "-m", "windlass.services.admin.migrate"], cwd=PROJECT, env=environment, check=True, timeout=120
    )
    ((revision,),) = ask(empty_database_url, "SELECT version_num FROM alembic_version")
    assert revision == newest_revision()


def test_who_listens_goes_past_the_pooler(database_url: str) -> None:
    nowhere = f"postgresql://nobody@127.0.0.1:{free_port()}/nothing"
    settings = Settings(database_url=nowhere, database_direct_url=database_url)

    async def listen() -> None:
        connected = asyncio.Event()
        listener = db.Listener(settings, "test", {"windlass_dispatch": lambda _payload: connected.set()})
        listening = asyncio.create_task(listener.run())
        async with asyncio.timeout(60):
            await connected.wait()
        listening.cancel()

    asyncio.run(listen())

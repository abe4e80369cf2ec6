"""A private Postgres: on loopback only, on a port of its own, with its durability on, never as root."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

from windlass.services.laptop.kept_files import kept_secret, make_directory, random_word
from windlass.services.laptop.ports import LOOPBACK, kept_port
from windlass.services.laptop.servers.cluster import (
    SUPERUSER,
    clear_leftovers,
    create_cluster,
    is_ready,
    place_for,
    programs_for,
    write_configuration,
)
from windlass.services.laptop.supervision.children import Child, Children, Finished
from windlass.services.laptop.supervision.unit import StartFailure, ending
from windlass.shared.process.accounts import account_for_postgres

DATABASE: Final = "windlass"
STOP_SECONDS: Final = 20


class PrivatePostgres:
    name = "postgres"

    def __init__(
        self, directory: Path, children: Children, on_line: Callable[[str], None], *, programs: Path | None = None
    ) -> None:
        """With the newest Postgres of this machine, or with these programs."""
        self._directory = make_directory(directory.absolute(), leads_to_postgres=True)
        self._children = children
        self._on_line = on_line
        self._account = account_for_postgres()
        self._data = place_for(self._directory, self._account, on_line)
        self._programs = programs or programs_for(self._data)
        self._password = kept_secret(self._directory / "password", lambda: random_word(32))
        self._port = 0
        self._postmaster: Child | None = None

    @property
    def data(self) -> Path:
        return self._data

    @property
    def pid(self) -> int | None:
        return self._postmaster.pid if self._postmaster else None

    @property
    def url(self) -> str:
        """Known once it has been started."""
        return f"postgresql://{SUPERUSER}:{self._password}@{LOOPBACK}:{self._port}/{DATABASE}"

    async def start(self) -> None:
        if not self._data.exists():
            self._on_line("creating the database cluster")
            await create_cluster(self._data, self._programs, self._password, self._account, self._children)
        await clear_leftovers(self._data, self._on_line)
        # Restarted under running clients, it must come back where they look for it.
        self._port = self._port or kept_port(self._directory / "port")
        write_configuration(self._data, self._port)
        self._postmaster = self._children.start(
            [self._programs / "postgres", "-D", self._data],
            environment={"PATH": os.defpath, "LANG": "C.UTF-8"},
            on_line=self._on_line,
            directory=self._data,
            account=self._account,
            death_signal=signal.SIGINT,
        )
        await self._until_ready(self._postmaster)
        databases = await self._sql("SELECT datname FROM pg_database")
        if DATABASE not in databases.output.splitlines():
            await self._sql(f"CREATE DATABASE {DATABASE}")

    async def wait(self) -> str:
        return ending(await self._postmaster.wait()) if self._postmaster else "not started"

    async def stop(self) -> None:
        """A fast shutdown: clients are cut off, all is written. Killed, it recovers at the next start."""
        if self._postmaster and not await self._children.stop(self._postmaster, signal.SIGINT, STOP_SECONDS):
            self._on_line(f"did not stop within {STOP_SECONDS} s and was killed")

    async def _until_ready(self, postmaster: Child) -> None:
        """As long as it takes: it may have much to recover, and a restart would only begin that anew."""
        while not is_ready(self._data, postmaster.pid):
            if postmaster.has_ended:
                raise StartFailure(f"Postgres ended before it was ready ({await self.wait()})")
            await asyncio.sleep(0.05)

    async def _sql(self, statement: str) -> Finished:
        """By psql: the command line knows no database driver."""
        finished = await self._children.run(
            [self._programs / "psql", "--no-psqlrc", "--no-align", "--tuples-only", "--command", statement],
            environment={
                "PATH": os.defpath,
                "PGHOST": LOOPBACK,
                "PGPORT": str(self._port),
                "PGUSER": SUPERUSER,
                "PGPASSWORD": self._password,
                "PGDATABASE": "postgres",
            },
        )
        if finished.code != 0:
            raise StartFailure(f"Postgres refused {statement!r}: {finished.output}")
        return finished

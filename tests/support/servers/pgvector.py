"""A private Postgres that carries pgvector, from an environment of its own (`make test` and `make bench` build it)."""

import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.servers.private_servers import open_directory
from windlass.services.laptop.servers.postgres import PrivatePostgres
from windlass.services.laptop.supervision.children import Children

HOW = "no Postgres with pgvector here: `make test` installs it, or `make .venv/.pgvector` alone"


def programs() -> Path | None:
    """None where it is not installed."""
    found = sorted((Path(sys.prefix) / "pgvector").glob("lib/python3*/site-packages/*/pginstall/bin"))
    return found[0] if found else None


@asynccontextmanager
async def a_postgres_with_pgvector() -> AsyncIterator[str]:
    """Its URL; nothing of it stays."""
    with open_directory() as directory:
        children = Children()
        lines: list[str] = []
        postgres = PrivatePostgres(directory / "postgres", children, lines.append, programs=programs())
        try:
            await postgres.start()
            yield postgres.url
        except BaseException:
            print(*lines, sep="\n")
            raise
        finally:
            children.kill_all()
            await children.end_all()
            shutil.rmtree(postgres.data, ignore_errors=True)

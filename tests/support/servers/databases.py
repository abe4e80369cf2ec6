"""Databases as tests see them from outside: statements, answers, migrations."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import asyncpg

from tests.support.waiting import wait_until

PROJECT = Path(__file__).parents[3]


def execute(url: str, statement: str) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    asyncio.run(run())


def ask(url: str, query: str, *values: Any) -> list[asyncpg.Record]:
    async def run() -> list[asyncpg.Record]:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetch(query, *values)
        finally:
            await connection.close()

    return asyncio.run(run())


def create_database(server_url: str, name: str, template: str) -> None:
    _when_nobody_is_left(server_url, f"CREATE DATABASE {name} TEMPLATE {template}")


def drop_database(server_url: str, name: str) -> None:
    _when_nobody_is_left(server_url, f"DROP DATABASE {name} WITH (FORCE)")


def _when_nobody_is_left(server_url: str, statement: str) -> None:
    """Postgres gives those who are still connected five seconds, which on a busy machine are not enough to leave."""

    def is_done() -> bool:
        try:
            execute(server_url, statement)
        except asyncpg.ObjectInUseError:
            return False
        return True

    wait_until(statement, is_done)


def migrate(url: str) -> None:
    environment = {**os.environ, "WINDLASS_DATABASE_URL": url}
    subprocess.run([sys.executable, "-m", "windlass.services.admin.migrate"], cwd=PROJECT, env=environment, check=True)

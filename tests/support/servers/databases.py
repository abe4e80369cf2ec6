"""Databases as tests see them from outside: statements, answers, migrations."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import asyncpg

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


def migrate(url: str) -> None:
    environment = {**os.environ, "WINDLASS_DATABASE_URL": url}
    subprocess.run([sys.executable, "-m", "windlass.services.admin.migrate"], cwd=PROJECT, env=environment, check=True)

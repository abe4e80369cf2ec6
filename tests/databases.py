"""Statements that tests run from outside, as an administrator would."""

import asyncio

import asyncpg


def execute(url: str, statement: str) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    asyncio.run(run())

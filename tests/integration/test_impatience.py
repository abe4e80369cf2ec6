"""Connections that give up: whatever moment a call is cut off at, it says that Postgres is away and nothing else."""

import asyncio

import asyncpg
import pytest

from windlass.shared.db import UNAVAILABLE, impatient


def test_a_call_whose_connection_is_dropped_between_two_of_its_steps_says_that_postgres_is_away(
    database_url: str,
) -> None:
    async def scenario() -> None:
        connection = await asyncpg.connect(database_url, connection_class=impatient(5))
        connection.terminate()
        # `fetch` looks first whether the connection is open; this is how it goes on when that has been answered.
        with pytest.raises(UNAVAILABLE):
            await connection._execute("SELECT 1", (), 0, None)  # type: ignore[attr-defined]

    asyncio.run(scenario())

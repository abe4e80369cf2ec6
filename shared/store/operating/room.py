"""Whether Postgres takes what is to be kept: one whose disk is full still answers, and refuses the next task."""

from typing import Literal

import asyncpg

from windlass.shared.db import Database

Refusal = Literal["disk-full", "read-only"]

KEEP_A_MEGABYTE = """
SET LOCAL work_mem = '64kB';
WITH kept AS MATERIALIZED (SELECT repeat('x', 1000) FROM generate_series(1, 1000)) SELECT count(*) FROM kept
"""
"""More than may stay in memory, so it goes into a file that ends with the statement. A small write would prove nothing:
tables have gaps and the log is reused, so that it succeeds long after the disk is full."""


async def refusal(db: Database) -> Refusal | None:
    """Why nothing can be stored, or none when something can."""
    try:
        await db.execute(KEEP_A_MEGABYTE)
    except asyncpg.DiskFullError:
        return "disk-full"
    is_read_only: bool = await db.fetchval("SELECT current_setting('transaction_read_only')::boolean")
    return "read-only" if is_read_only else None

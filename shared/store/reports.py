"""What dispatchers and janitors last said of themselves, and which schema they all stand on."""

from datetime import datetime
from typing import Any

import asyncpg

from shared.db import Database, Row


async def say(db: Database, service: str, instance_id: str, *, healthy: bool, details: dict[str, Any]) -> datetime:
    """Returns when it was heard, by Postgres' clock."""
    heard_at: datetime = await db.fetchval(
        """
        INSERT INTO service_reports (service, instance_id, healthy, details) VALUES ($1, $2, $3, $4)
        ON CONFLICT (service, instance_id) DO UPDATE
        SET healthy = excluded.healthy, details = excluded.details, reported_at = clock_timestamp()
        RETURNING clock_timestamp()
        """,
        service,
        instance_id,
        healthy,
        details,
    )
    return heard_at


async def withdraw(db: Database, service: str, instance_id: str) -> None:
    await db.execute("DELETE FROM service_reports WHERE service = $1 AND instance_id = $2", service, instance_id)


async def recent(db: Database, *, within_seconds: float) -> list[Row]:
    return await db.fetch(
        """
        SELECT service, instance_id, healthy, details, reported_at FROM service_reports
        WHERE reported_at > clock_timestamp() - make_interval(secs => $1)
        """,
        within_seconds,
    )


async def schema_revision(db: Database) -> str | None:
    """The newest migration that the database has seen, or none before the first."""
    try:
        revision: str | None = await db.fetchval("SELECT version_num FROM alembic_version")
    except asyncpg.UndefinedTableError:
        return None
    return revision

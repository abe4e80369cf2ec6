"""What dispatchers and janitors last said of themselves, and which schema they all stand on."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import asyncpg

from windlass.shared.admission import Broker
from windlass.shared.db import Database
from windlass.shared.store import functions
from windlass.shared.store.record import fetch
from windlass.shared.store.rows import ServiceReportRow

BEST_FIRST: tuple[Broker, ...] = ("connected", "blocked", "away")


@dataclass(frozen=True)
class BrokerReport:
    """How RabbitMQ is; `blocked_for` are its own words."""

    state: Broker
    blocked_for: str | None = None
    version: str | None = None


@dataclass(frozen=True)
class Schema:
    """The newest migration that the database has seen, none before the first, and whether the functions that this
    version calls are there; on which version of Postgres."""

    revision: str | None = None
    has_functions: bool = False
    server_version: str | None = field(default=None, compare=False)

    def serves(self, needed: str) -> bool:
        """Who needs this revision, or an older one. Newer tables serve as well: old and new processes run side by side
        during an upgrade."""
        return self.revision is not None and self.revision >= needed and self.has_functions


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


async def recent(db: Database, *, within_seconds: float) -> list[ServiceReportRow]:
    return await fetch(
        db,
        ServiceReportRow,
        """
        SELECT service, instance_id, healthy, details, reported_at FROM service_reports
        WHERE reported_at > clock_timestamp() - make_interval(secs => $1)
        """,
        within_seconds,
    )


def broker_among(said: Sequence[ServiceReportRow]) -> BrokerReport | None:
    """As the best placed dispatcher sees it, for one is enough to ring; none when no dispatcher was heard of."""
    seen = [
        BrokerReport(
            row.details.get("broker", "away"), row.details.get("blocked_for"), row.details.get("broker_version")
        )
        for row in said
        if row.service == "dispatcher"
    ]
    return min(seen, key=lambda report: BEST_FIRST.index(report.state), default=None)


async def schema(db: Database) -> Schema:
    """Asked of the catalogue: what a table says of functions, a backup of some tables says, too."""
    try:
        found = await db.fetchrow(
            """
            SELECT version_num, to_regnamespace($1) IS NOT NULL,
                   split_part(current_setting('server_version'), ' ', 1) FROM alembic_version
            """,
            functions.schema(),
        )
    except asyncpg.UndefinedTableError:
        found = None
    return Schema(*found) if found is not None else Schema()

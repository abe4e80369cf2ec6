"""The audit log: what an operator did, to what, and with which key. Entries are only ever added."""

from typing import Any

from windlass.shared.db import Database
from windlass.shared.store.record import fetch
from windlass.shared.store.rows import AuditEntryRow


async def record(
    db: Database, *, key_id: str, user_id: str, action: str, target: str | None = None, details: dict[str, Any]
) -> None:
    await db.execute(
        "INSERT INTO audit_log (key_id, user_id, action, target, details) VALUES ($1, $2, $3, $4, $5)",
        key_id,
        user_id,
        action,
        target,
        details,
    )


async def newest(
    db: Database, *, action: str | None, user_id: str | None, before: int | None, limit: int
) -> list[AuditEntryRow]:
    """A page of entries older than the last one that the reader has seen."""
    return await fetch(
        db,
        AuditEntryRow,
        """
        SELECT audit_id, at, key_id, user_id, action, target, details FROM audit_log
        WHERE ($1::text IS NULL OR action = $1) AND ($2::text IS NULL OR user_id = $2)
          AND ($3::bigint IS NULL OR audit_id < $3)
        ORDER BY audit_id DESC LIMIT $4
        """,
        action,
        user_id,
        before,
        limit,
    )

"""Publishes events that are no moves of a task."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from windlass.shared.db import Database, as_json
from windlass.shared.store.functions import named


async def publish(
    db: Database,
    type_: str,
    subject: UUID,
    *,
    seq: int,
    at: datetime,
    owner: str | None,
    about: Mapping[str, Any],
    data: Mapping[str, Any],
) -> None:
    """Writes an event to the outbox in the caller's transaction, if any endpoint subscribes to anything. Each endpoint
    receives `(subject, seq)` once.

    `owner` is the user whose object it is. `about` is compared with the filters: `project_id`, `workflow_id`, `actor`
    and `tags`. `data` is sent as it is; write its times with `bodies.utc`.
    """
    event = {"subject": subject, "seq": seq, "owner": owner, "about": about, "data": data}
    await db.execute(
        f"SELECT {named('publish_event')}($1, $2, $3, $4::text::jsonb)",
        subject,
        type_,
        at,
        as_json(event),
    )

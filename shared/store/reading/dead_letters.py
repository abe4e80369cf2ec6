"""Dead tasks by what they died of."""

from dataclasses import replace
from datetime import datetime
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.filters import Filter
from windlass.shared.states import State
from windlass.shared.store.reading.listing import Selection
from windlass.shared.store.record import Record, fetch


class ErrorGroup(Record):
    """Dead tasks of one kind of error, with the newest of them."""

    fingerprint: str
    count: int
    newest_at: datetime
    oldest_at: datetime
    example_task_id: UUID
    error_type: str
    message: str | None


def only_dead(wanted: Filter) -> Filter:
    return replace(wanted, status=[State.DEAD] if wanted.status is None or State.DEAD in wanted.status else [])


async def group_by_error(db: Database, wanted: Filter, *, limit: int, owner: str | None = None) -> list[ErrorGroup]:
    """The kinds of errors among the dead tasks that a filter means, the most frequent first, each with its newest."""
    selection = Selection(only_dead(wanted), owner=owner)
    if not selection.branches():
        return []
    (where,) = selection.branches()
    return await fetch(
        db,
        ErrorGroup,
        f"""
        SELECT grouped.*, newest.task_id AS example_task_id, newest.error ->> 'type' AS error_type,
               newest.error ->> 'message' AS message
        FROM (
            SELECT error_fingerprint AS fingerprint, count(*) AS count,
                   max(completed_at) AS newest_at, min(completed_at) AS oldest_at
            FROM tasks WHERE {where}
            GROUP BY error_fingerprint ORDER BY count(*) DESC, error_fingerprint LIMIT {int(limit)}
        ) AS grouped
        CROSS JOIN LATERAL (
            SELECT task_id, error FROM tasks WHERE error_fingerprint = grouped.fingerprint AND {where}
            ORDER BY task_id DESC LIMIT 1
        ) AS newest
        ORDER BY grouped.count DESC, grouped.fingerprint
        """,  # noqa: S608 - see Selection
        *selection.values,
    )

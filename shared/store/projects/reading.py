"""Projects as they are now, their items, runs and histories."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from windlass.shared.concerns import Concern
from windlass.shared.db import Database
from windlass.shared.project_states import ITEM, QUEUE, RUN
from windlass.shared.store.projects.families import remains
from windlass.shared.store.record import Record, fetch, fetchrow
from windlass.shared.store.rows import ProjectEventRow, ProjectRow, ProjectRunRow

EVENT_NAMES = {
    **dict.fromkeys([*QUEUE, "archive", "restore"], "status"),
    **dict.fromkeys([*RUN, "rebind"], "run"),
    **dict.fromkeys([*ITEM, "edit", "move", "delete"], "item"),
}
"""What the stream calls each row of a history."""


class Status(ProjectRow):
    """A project with what its queue's status says beside."""

    current_task_id: UUID | None
    counts: dict[str, int]
    remains: dict[str, Any] | None
    """After a force-stop, until its proof: what still runs, and the open jobs."""
    is_behind: bool
    """A task of the project has moved, and the move was not handled yet."""
    read_at: datetime


class ItemRead(Record):
    """An item as it is shown, bound or not."""

    item_id: UUID
    position: str
    title: str | None
    state: str
    given: dict[str, Any]
    task: dict[str, Any]
    run_id: UUID | None
    task_id: UUID | None


class RunRead(ProjectRunRow):
    """A run."""


SHOWN_STATE = """
    CASE WHEN r.ended_at IS NULL AND r.run_id IS NOT NULL
         THEN CASE WHEN t.attempt > r.attempts_before THEN 'running' ELSE 'waiting' END
         ELSE i.state END
"""
"""A bound item waits until a worker has claimed its task, and runs from then on: the claim itself writes only tasks."""

ITEMS = f"""
    SELECT i.item_id, trim_scale(i.position)::text AS position, i.title, {SHOWN_STATE} AS state, i.given, i.task,
           i.last_run_id AS run_id, r.task_id
    FROM project_items i LEFT JOIN project_runs r ON r.run_id = i.last_run_id
    LEFT JOIN tasks t ON t.task_id = r.task_id
"""  # noqa: S608 - names of our own


STATUS = f"""
    SELECT p.*, current.task_id AS current_task_id, clock_timestamp() AS read_at,
           CASE WHEN p.forced_at IS NOT NULL
                THEN {remains("current.task_id")} END AS remains,
           EXISTS (
               SELECT 1 FROM outbox o WHERE o.feature = '{Concern.RUN.word}' AND o.subject = p.project_id) AS is_behind,
           (SELECT coalesce(jsonb_object_agg(counted.state, counted.items), '{{}}') FROM (
               SELECT shown.state, count(*) AS items FROM (
                   SELECT i.state FROM project_items i
                   WHERE i.project_id = p.project_id
                     AND (bound.item_id IS NULL OR i.item_id <> bound.item_id)
                   UNION ALL
                   SELECT bound.state WHERE bound.item_id IS NOT NULL
               ) AS shown GROUP BY shown.state
           ) AS counted) AS counts
    FROM projects p LEFT JOIN project_runs current ON current.run_id = p.current_run_id
    LEFT JOIN LATERAL (
        SELECT i.item_id, {SHOWN_STATE} AS state
        FROM project_runs r JOIN project_items i ON i.item_id = r.item_id AND i.last_run_id = r.run_id
        LEFT JOIN tasks t ON t.task_id = r.task_id
        WHERE r.project_id = p.project_id AND r.ended_at IS NULL
    ) AS bound ON true
    """  # noqa: S608 - names of our own


async def get(db: Database, project_id: UUID) -> Status | None:
    return await fetchrow(db, Status, f"{STATUS} WHERE p.project_id = $1", project_id)


async def newest(
    db: Database,
    *,
    owner: str | None,
    states: Sequence[str] | None = None,
    archived: bool = False,
    q: str | None = None,
    before: UUID | None = None,
    limit: int,
) -> list[Status]:
    """Newest first; `q` looks for a part of the name."""
    return await fetch(
        db,
        Status,
        f"""
        {STATUS}
        WHERE ($1::text IS NULL OR p.user_id = $1) AND ($2::text[] IS NULL OR p.state = ANY ($2))
          AND (p.archived_at IS NOT NULL) = $3 AND ($4::text IS NULL OR strpos(lower(p.name), lower($4)) > 0)
          AND ($5::uuid IS NULL OR p.project_id < $5)
        ORDER BY p.project_id DESC LIMIT $6
        """,
        owner,
        None if states is None else list(states),
        archived,
        q,
        before,
        limit,
    )


async def items(
    db: Database, project_id: UUID, *, states: Sequence[str] | None = None, after: str | None = None, limit: int
) -> list[ItemRead]:
    """In the order of the backlog, from behind a position on."""
    return await fetch(
        db,
        ItemRead,
        f"""
        {ITEMS}
        WHERE i.project_id = $1 AND ($2::text[] IS NULL OR {SHOWN_STATE} = ANY ($2))
          AND ($3::text IS NULL OR i.position > $3::numeric)
        ORDER BY i.position LIMIT $4
        """,
        project_id,
        None if states is None else list(states),
        after,
        limit,
    )


async def item(db: Database, project_id: UUID, item_id: UUID) -> ItemRead | None:
    return await fetchrow(db, ItemRead, f"{ITEMS} WHERE i.project_id = $1 AND i.item_id = $2", project_id, item_id)


async def some_items(db: Database, project_id: UUID, item_ids: Sequence[UUID]) -> list[ItemRead]:
    query = f"{ITEMS} WHERE i.project_id = $1 AND i.item_id = ANY ($2) ORDER BY i.position"
    return await fetch(db, ItemRead, query, project_id, list(item_ids))


async def runs(db: Database, project_id: UUID, *, before: UUID | None = None, limit: int) -> list[RunRead]:
    """Newest first."""
    return await fetch(
        db,
        RunRead,
        """
        SELECT * FROM project_runs WHERE project_id = $1 AND ($2::uuid IS NULL OR run_id < $2)
        ORDER BY run_id DESC LIMIT $3
        """,
        project_id,
        before,
        limit,
    )


async def run(db: Database, run_id: UUID) -> RunRead | None:
    return await fetchrow(db, RunRead, "SELECT * FROM project_runs WHERE run_id = $1", run_id)


async def events(db: Database, project_id: UUID, *, after: int, limit: int) -> list[ProjectEventRow]:
    """Its history, oldest first, after this `seq`."""
    return await fetch(
        db,
        ProjectEventRow,
        "SELECT seq, type, at, data FROM project_events WHERE project_id = $1 AND seq > $2 ORDER BY seq LIMIT $3",
        project_id,
        after,
        limit,
    )

"""What is done to a project's queue: it is made, changed, started, stopped and archived."""

from typing import Any
from uuid import UUID

import msgspec

from windlass.shared.db import Database, as_json
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetchrow
from windlass.shared.store.tasks import KeyInFlight, KeyReused

CHANNEL = "windlass_projects"
"""Called when something has happened to a project."""


class NewProject(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A project to be; its id stands where a task's would, for the keys are the same."""

    task_id: UUID
    user_id: str
    name: str
    defaults: dict[str, Any] = msgspec.field(default_factory=dict)
    on_failure: str
    idempotency_key: str | None = None
    idempotency_ttl_seconds: float = 86400
    body_hash: str | None = None


class Created(Record):
    """The project, and whether it was there before; or why there is none."""

    refusal: str | None
    project_id: UUID
    deduplicated: bool


class Started(Record):
    """The run; or why none was started, with the one that is open, if that is why."""

    refusal: str | None
    run_id: UUID | None


async def create(db: Database, project: NewProject) -> Created:
    document = {"defaults": {}, **msgspec.to_builtins(project)}
    query = f"SELECT * FROM {named('create_project')}($1::text::jsonb)"  # noqa: S608 - a name of our own
    row = await fetchrow(db, Created, query, as_json(document))
    assert row is not None, "a function that returns a table of one row has it"
    match row.refusal:
        case "key-in-flight":
            raise KeyInFlight
        case "key-reused":
            raise KeyReused
    return row


async def alter(db: Database, project_id: UUID, changes: dict[str, Any]) -> bool:
    """Its name, defaults or what it does on failure; not, when it is archived. Items keep the defaults that they were
    written under."""
    query = """
        UPDATE projects SET
            name = coalesce($2, name), defaults = coalesce($3, defaults), on_failure = coalesce($4, on_failure),
            updated_at = clock_timestamp()
        WHERE project_id = $1 AND archived_at IS NULL RETURNING project_id
    """
    found = await db.fetchval(
        query, project_id, changes.get("name"), changes.get("defaults"), changes.get("on_failure")
    )
    return found is not None


async def archive(db: Database, project_id: UUID) -> str | None:
    """Returns why not, if it does not; again is fine."""
    refusal: str | None = await db.fetchval(f"SELECT {named('archive_project')}($1)", project_id)
    return refusal


async def start(db: Database, project_id: UUID, *, mode: str, item_id: UUID | None = None) -> Started:
    query = f"SELECT * FROM {named('start_project')}($1, $2, $3)"  # noqa: S608 - a name of our own
    row = await fetchrow(db, Started, query, project_id, mode, item_id)
    assert row is not None, "a function that returns a table of one row has it"
    return row


async def stop(db: Database, project_id: UUID) -> None:
    """Once this returns no run starts before the next `start`."""
    await db.execute(f"SELECT {named('stop_project')}($1)", project_id)


async def force_stop(db: Database, project_id: UUID) -> UUID | None:
    """Asks the run and all that came of it to stop; returns the run, or none when there is nothing to stop. The project
    is idle when `prove_stopped` says so."""
    run_id: UUID | None = await db.fetchval(f"SELECT {named('force_stop_project')}($1)", project_id)
    await cancel_descendants(db, project_id)
    return run_id


async def cancel_descendants(db: Database, project_id: UUID) -> None:
    """Level by level, and once more after each: what is asked to stop makes no more children."""
    while await db.fetchval(f"SELECT {named('cancel_descendants')}($1)", project_id):
        pass


async def prove_stopped(db: Database, project_id: UUID) -> bool:
    """Whether nothing of a run that is to be stopped by force lives any more; then its project is idle."""
    is_proven: bool = await db.fetchval(f"SELECT {named('prove_stopped')}($1)", project_id)
    return is_proven

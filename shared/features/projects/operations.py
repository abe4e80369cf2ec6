"""What callers ask of a project. Each call first handles what has happened to the project."""

import logging
from typing import Any
from uuid import UUID

import msgspec

from windlass.shared import db as postgres
from windlass.shared.db import Database, as_json
from windlass.shared.features.projects import items, queries, rules
from windlass.shared.features.projects.turn import Turn, in_turn
from windlass.shared.project_states import QueueState
from windlass.shared.store.functions import named
from windlass.shared.store.projects import reading
from windlass.shared.store.projects.reading import Status
from windlass.shared.store.record import Record, fetchrow
from windlass.shared.store.tasks import KeyInFlight, KeyReused

log = logging.getLogger("projects")


class NewProject(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A project to create. `task_id` is its id: projects and tasks share their idempotency keys."""

    task_id: UUID
    user_id: str
    name: str
    defaults: dict[str, Any] = msgspec.field(default_factory=dict)
    on_failure: str
    idempotency_key: str | None = None
    idempotency_ttl_seconds: float = 86400
    body_hash: str | None = None


class Created(Record):
    """The project, and whether an earlier call created it; or why there is none."""

    refusal: str | None
    project_id: UUID
    deduplicated: bool


class Started(msgspec.Struct):
    """The run; or why none was started, with the open run if that is the reason."""

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
    """Changes the name, the defaults, or what happens on a failure, unless the project is archived. Items keep the
    defaults that they were created with."""

    async def act(turn: Turn) -> bool:
        if turn.queue.archived_at is not None:
            return False
        await queries.alter(turn.db, project_id, changes)
        return True

    return bool(await in_turn(db, project_id, act))


async def archive(db: Database, project_id: UUID) -> str | None:
    """Returns why not, if it is not archived. Archiving it again changes nothing."""

    async def act(turn: Turn) -> str | None:
        if turn.queue.state != QueueState.IDLE:
            return "project-running"
        if turn.queue.archived_at is None:
            turn.archive()
        return None

    return await in_turn(db, project_id, act)


async def start(
    db: Database, project_id: UUID, *, mode: str, item_id: UUID | None = None, reports: list[Turn] | None = None
) -> Started:
    """Starts with the first item that waits, or with a named one."""

    async def act(turn: Turn) -> Started:
        refusal = rules.refusal_to_start(state=turn.queue.state, is_archived=turn.queue.archived_at is not None)
        if refusal is not None:
            return Started(refusal, turn.queue.current_run_id)
        item = turn.choice.first if item_id is None else await items.get(turn.db, project_id, item_id)
        refusal = rules.refusal_of_item(item_state=None if item is None else item.state, is_named=item_id is not None)
        if refusal is not None or item is None:
            return Started(refusal, None)
        return Started(None, turn.start(item, mode=mode, is_named=item_id is not None).run_id)

    started = await in_turn(db, project_id, act, reports=reports)
    assert started is not None, "projects are never deleted"
    return started


async def stop(db: Database, project_id: UUID) -> None:
    """Once this returns, no run starts before the next `start`."""
    await in_turn(db, project_id, Turn.stop)


async def force_stop(db: Database, project_id: UUID, *, reports: list[Turn] | None = None) -> UUID | None:
    """Cancels the run's task, and returns the run; none if there is nothing to stop. The caller, or the janitor, goes
    on with `cancel_descendants` until `prove_stopped` returns true."""

    async def act(turn: Turn) -> UUID | None:
        return turn.force()

    return await in_turn(db, project_id, act, reports=reports)


async def cancel_descendants(db: Database, project_id: UUID) -> None:
    """Level by level, and once more after each level: a task that is asked to stop submits no more children. Each call
    is a transaction of its own, so that tasks are locked in order."""
    while wanted := await queries.to_cancel(db, project_id):
        if not await queries.cancel(db, wanted, "force-stop"):
            return


async def prove_stopped(db: Database, project_id: UUID) -> bool:
    """Whether nothing of a force-stopped run is alive any more. Its project is idle then."""

    async def act(turn: Turn) -> bool:
        return turn.queue.state == QueueState.IDLE

    return bool(await in_turn(db, project_id, act))


class Refused(msgspec.Struct):
    """Why the task of a run was not revived, and the run that is open."""

    reason: str
    open_run_id: UUID | None


async def revive(db: Database, project_id: UUID, task_id: UUID) -> Refused | None:
    """Gives the task of a run a new life, as a new single run. Only an idle project does."""

    async def act(turn: Turn) -> Refused | None:
        refusal = rules.refusal_to_start(state=turn.queue.state, is_archived=turn.queue.archived_at is not None)
        task = await queries.run_of_ended_task(turn.db, task_id)
        if refusal is None and task is not None:
            await turn.revive(task)
        return Refused(refusal, turn.queue.current_run_id) if refusal is not None and task is not None else None

    return await in_turn(db, project_id, act)


async def settle(db: Database, project_id: UUID, *, reports: list[Turn] | None = None) -> None:
    """Handles what has happened to the project."""

    async def act(turn: Turn) -> None:
        del turn

    await in_turn(db, project_id, act, reports=reports)


async def caught_up(db: Database, features: Database, project_id: UUID) -> Status | None:
    """The project after everything that has happened until now. Without pending rows this locks nothing. If handling
    them fails, it is returned as it was, and the orchestrator tries again."""
    row = await reading.get(db, project_id)
    if row is None or not row.is_behind:
        return row
    try:
        await settle(features, project_id)
    except postgres.AWAY_OR_BUSY:
        raise
    except Exception:
        log.exception("project_catch_up_failed project=%s", project_id)
    return await reading.get(db, project_id)


async def restore(db: Database, *, step: int) -> int:
    """After a restore: event numbers go beyond every number that a client may have seen, and runs whose tasks ended or
    no longer exist are closed. Returns how many."""
    closed = await queries.ended_runs(db)

    async def act(turn: Turn) -> None:
        turn.note_restore()

    for project_id in await queries.advance_numbers(db, step):
        await in_turn(db, project_id, act, reports=[])
    return closed

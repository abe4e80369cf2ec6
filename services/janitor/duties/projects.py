"""Projects: what happens to them is logged and counted, proofs are waited for, and what stands still is moved on."""

import logging
from datetime import datetime
from uuid import UUID

from windlass.services.janitor.rhythms import UNTIL_CALLED
from windlass.shared.db import CONTENDED, Database
from windlass.shared.metrics.projects import RUN_SECONDS, RUNS, STOPS
from windlass.shared.store import projects
from windlass.shared.store.projects import looking_after
from windlass.shared.store.projects.looking_after import Said

log = logging.getLogger("janitor")

AGAIN_SECONDS = 0.5
"""While something that is to be stopped by force still lives, and when somebody was in the way."""


async def look_after_projects(connection: Database) -> float:
    """Whenever something has happened to one; returns how long to wait for the next."""
    while events := await looking_after.say_events(connection):
        for event in events:
            say(event)
        for project_id in {event.project_id for event in events if event.type == "requeue"}:
            await looking_after.choose_anew(connection, project_id)
    try:
        proven = [
            await stop_by_force(connection, project_id) for project_id in await looking_after.unproven(connection)
        ]
    except CONTENDED:
        return AGAIN_SECONDS
    return UNTIL_CALLED if all(proven) else AGAIN_SECONDS


async def stop_by_force(db: Database, project_id: UUID) -> bool:
    """Whoever asked for it may be gone: everything of the run is asked to stop, and the proof is looked for."""
    await projects.cancel_descendants(db, project_id)
    return await projects.prove_stopped(db, project_id)


def say(event: Said) -> None:
    """One line for each thing that has happened, whoever did it."""
    data = event.data
    match projects.EVENT_NAMES.get(event.type):
        case "run":
            log.info(
                "project %s: run %s %s: item %s, task %s, %s",
                event.project_id, data["run_id"], event.type, data["item_id"], data["task_id"], data["state"],
            )  # fmt: skip
            if "ended_at" in data:
                RUNS.labels(data["mode"], data["state"]).inc()
                RUN_SECONDS.labels(data["mode"], data["state"]).observe(
                    seconds_of(data["started_at"], data["ended_at"])
                )
        case "status":
            log.info("project %s: %s: %s %s", event.project_id, event.type, data["state"], data["stop_reason"] or "")
            if event.type == "finish":
                STOPS.labels(data["stop_reason"]).inc()
        case _:
            log.info("project %s: item %s %s: %s", event.project_id, data["item_id"], event.type, data["state"])


def seconds_of(started_at: str, ended_at: str) -> float:
    return (datetime.fromisoformat(ended_at) - datetime.fromisoformat(started_at)).total_seconds()


async def recheck_projects(db: Database) -> None:
    """There must be none: each end moves its queue in its own transaction."""
    if mended := await looking_after.recheck(db):
        log.error("%d projects had not been told what became of their runs", mended)

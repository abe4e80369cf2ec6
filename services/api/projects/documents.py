"""Projects, their items, runs and histories as they go out."""

from datetime import datetime
from typing import Any

from windlass.services.api.access.auth import Caller
from windlass.services.api.tasks.schemas import error_for, provider_job_for
from windlass.shared.project_states import ItemState, QueueState
from windlass.shared.store.projects import ItemRead, RunRead, Status
from windlass.shared.store.rows import ProjectEventRow

OURS = ("concerns", "reach", "dedupe_ttl_seconds")
"""What a stored task says to nobody but us."""


def project_document(row: Status, caller: Caller) -> dict[str, Any]:
    names = ("project_id", "name", "user_id", "defaults", "on_failure", "archived_at", "created_at", "updated_at")
    return {**{name: row[name] for name in names}, "queue": status_document(row, caller)}


def status_document(row: Status, caller: Caller) -> dict[str, Any]:
    """After a force-stop it keeps what still runs, until there is proof that nothing does."""
    document = {
        **queue_document(dict(row), caller),
        "elapsed_ms": _elapsed_ms(row.started_at, row.stopped_at or row.read_at),
        "counts": counts_document(row),
    }
    if row.remains is not None:
        document |= remains_document(row.remains, caller)
    return document


def queue_document(queue: dict[str, Any], caller: Caller) -> dict[str, Any]:
    """What a row of history says of a queue as well."""
    said = ("state", "mode", "current_run_id", "current_task_id", "started_at", "stopped_at", "stop_reason")
    return {
        **{name: queue[name] for name in said},
        "is_running": queue["state"] != QueueState.IDLE,
        "should_stop": queue["state"] == QueueState.STOPPING,
        "last_error": error_for(caller, queue["last_error"]),
    }


def counts_document(row: Status) -> dict[str, int]:
    return {state.value: row.counts.get(state, 0) for state in ItemState}


def remains_document(remains: dict[str, Any], caller: Caller) -> dict[str, Any]:
    return {"still_running": remains["still_running"], "open_jobs": jobs_document(remains["open_jobs"], caller)}


def jobs_document(jobs: list[dict[str, Any]], caller: Caller) -> list[dict[str, Any]]:
    return [{**job, "provider_job_id": provider_job_for(caller, job["provider_job_id"])} for job in jobs]


def item_document(row: ItemRead) -> dict[str, Any]:
    names = ("item_id", "position", "title", "state", "run_id", "task_id")
    task = {name: value for name, value in row.task.items() if name not in OURS}
    return {**{name: row[name] for name in names}, "task": task}


def run_document(row: RunRead, caller: Caller) -> dict[str, Any]:
    names = ("run_id", "item_id", "task_id", "mode", "state", "started_at", "ended_at", "revived_from", "schedule_id")
    receipt = row.receipt
    if receipt is not None:
        receipt = {**receipt, "open_jobs": jobs_document(receipt["open_jobs"], caller)}
    return {**{name: row[name] for name in names}, "error": error_for(caller, row.error), "receipt": receipt}


def event_document(row: ProjectEventRow, caller: Caller) -> dict[str, Any]:
    return {"seq": row.seq, "type": row.type, "at": row.at, "data": data_of(row, caller)}


def data_of(row: ProjectEventRow, caller: Caller) -> dict[str, Any]:
    data = row.data
    for name in ("error", "last_error"):
        if name in data:
            data = {**data, name: error_for(caller, data[name])}
    return data


def _elapsed_ms(started_at: datetime | None, until: datetime) -> int | None:
    return None if started_at is None else max(0, round((until - started_at).total_seconds() * 1000))

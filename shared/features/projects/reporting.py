"""What a turn did, for the log and for the metrics. Reported by the process that committed it."""

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from windlass.shared.features.projects.queries import Item, Outcome
from windlass.shared.metrics import counting
from windlass.shared.metrics.projects import RUN_SECONDS, RUNS, STOPS
from windlass.shared.store.projects import EVENT_NAMES

log = logging.getLogger("projects")


def report(
    project_id: UUID, events: Sequence[dict[str, Any]], submitted: Sequence[Item], outcomes: Sequence[Outcome]
) -> None:
    counting.submitted(submitted)
    for outcome in outcomes:
        counting.revived(outcome.revived)
        counting.ended(outcome.ended)
    for event in events:
        _report(project_id, event["type"], event["data"])


def _report(project_id: UUID, change: str, data: dict[str, Any]) -> None:
    match EVENT_NAMES.get(change):
        case "run":
            log.info(
                "project_run_%s project=%s run=%s item=%s task=%s state=%s",
                change, project_id, data["run_id"], data["item_id"], data["task_id"], data["state"],
            )  # fmt: skip
            if "ended_at" in data:
                RUNS.labels(data["mode"], data["state"]).inc()
                RUN_SECONDS.labels(data["mode"], data["state"]).observe(_seconds(data["started_at"], data["ended_at"]))
        case "status":
            log.info("project_%s project=%s state=%s reason=%s", change, project_id, data["state"], data["stop_reason"])
            if change == "finish":
                STOPS.labels(data["stop_reason"]).inc()
        case _:
            log.info("project_item_%s project=%s item=%s state=%s", change, project_id, data["item_id"], data["state"])


def _seconds(started_at: str, ended_at: str) -> float:
    return (datetime.fromisoformat(ended_at) - datetime.fromisoformat(started_at)).total_seconds()

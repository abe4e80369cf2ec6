"""What a turn did, for the log and for the metrics. Reported by the process that committed it."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from windlass.shared.features.schedules.rules import kind_of
from windlass.shared.metrics import counting
from windlass.shared.metrics.schedules import FAILURES, RUNS
from windlass.shared.schedules.words import Kind
from windlass.shared.store.rows import ScheduleEventRow, ScheduleRow

log = logging.getLogger("schedules")


@dataclass(frozen=True)
class Decision:
    """What became of a due time. It is not new if the time had its row before."""

    schedule_id: UUID
    due_at: datetime
    outcome: str
    reason: str | None
    kind: str
    is_new: bool


class _Queue(msgspec.Struct):
    actor: str
    provider: str


def report(
    row: ScheduleRow,
    decisions: Sequence[Decision],
    started: Sequence[dict[str, Any]],
    events: Sequence[ScheduleEventRow],
) -> None:
    for decision in decisions:
        if decision.is_new:
            RUNS.labels(decision.kind, decision.outcome).inc()
    for start in started:
        tasks = start.get("submissions", [start] if kind_of(start) == Kind.TASK else [])
        counting.submitted([_Queue(each["actor"], each["provider"]) for each in tasks])
    for event in events:
        data = event.data
        if event.type == "failed":
            FAILURES.inc()
            log.warning(
                "schedule_failed schedule=%s name=%s user=%s due_at=%s failures=%s error=%s",
                row.schedule_id, row.name, row.user_id, data["due_at"], data["failures"],
                data.get("ended_as") or data.get("reason"),
            )  # fmt: skip
        else:
            log.info(
                "schedule_%s schedule=%s name=%s user=%s reason=%s",
                event.type, row.schedule_id, row.name, row.user_id, data.get("reason"),
            )  # fmt: skip

"""What may never happen, in the order of the page that promises it, and one finding that it did."""

from dataclasses import dataclass

CRITERIA = (
    "tasks accepted and not finished within the bound after the last fault",
    "tasks with two completions in one life, or a result of an attempt that had lost its lease",
    "moments with more than `limit` at a provider (host-wide freezes excepted)",
    "paid orders placed twice",
    "slots or leases without a living owner after the bound",
    "stream gaps or repeats seen by a client",
    "subprocesses alive without a running task",
    "runs of one project open at the same time",
    "runs that began after a stop had answered, or that nobody had asked for",
    "items run again that nobody had requeued",
    "projects that said what was not so, or stood still with work to do",
    "tasks claimed of a workflow that was committed to be escalated or cancelled",
    "tasks of a workflow run again after they had completed",
    "lists that became tasks not exactly once, or results out of their order",
    "approvals decided twice, or tasks started without theirs",
    "commits at which a workflow was not what its tasks say, or workflows that did not end",
    "moves that an endpoint had subscribed to without one delivery, or deliveries neither taken nor held or failed",
    "deliveries that were not verified, were another than was stored, or went out of their order",
    "due times of a schedule without exactly one row",
    "starts of a schedule that no due time names, or that two do",
    "ends of agents not written down exactly once, or neither findable nor listed as failed",
    "finished steps that were run again, or given to a later attempt as something else",
)

UNFINISHED, COMPLETED_WRONGLY, OVER_THE_LIMIT, ORDERED_TWICE, OWNERLESS, STREAM_BROKEN, LEFT_ALIVE = range(1, 8)
TWO_OPEN_RUNS, RUN_AFTER_A_STOP, RUN_TWICE, UNTRUE = range(8, 12)
STARTED_STANDING, RUN_AFTER_COMPLETION, EXPANDED_WRONGLY, DECIDED_TWICE, NOT_WHAT_TASKS_SAY = range(12, 17)
NOT_DELIVERED, ARRIVED_WRONGLY, NO_ROW, STARTED_WRONGLY, NOT_REMEMBERED = range(17, 22)
STEP_RUN_AGAIN = 22


@dataclass(frozen=True)
class Violation:
    """`criterion` counts from 1, as the table does; `at` is when it happened, where that is known."""

    criterion: int
    words: str
    task_id: str | None = None
    at: float | None = None

    def __str__(self) -> str:
        return f"{self.criterion}. {CRITERIA[self.criterion - 1]}: {self.words}"

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
)

UNFINISHED, COMPLETED_WRONGLY, OVER_THE_LIMIT, ORDERED_TWICE, OWNERLESS, STREAM_BROKEN, LEFT_ALIVE = range(1, 8)


@dataclass(frozen=True)
class Violation:
    """`criterion` counts from 1, as the table does; `at` is when it happened, where that is known."""

    criterion: int
    words: str
    task_id: str | None = None
    at: float | None = None

    def __str__(self) -> str:
        return f"{self.criterion}. {CRITERIA[self.criterion - 1]}: {self.words}"

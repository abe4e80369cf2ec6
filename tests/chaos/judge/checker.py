"""The independent judge of a storm: by rows, by what clients saw, by the providers' books, and by /proc."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime

from tests.chaos.judge.lives import completed_wrongly, unfinished
from tests.chaos.judge.owners import left_alive, ownerless
from tests.chaos.judge.processes import is_alive, working_for
from tests.chaos.judge.provider_books import ordered_twice, over_the_limit
from tests.chaos.judge.rows import Rows, count_unsettled, read_rows
from tests.chaos.judge.stream_reads import broken_streams
from tests.chaos.judge.violation import COMPLETED_WRONGLY, CRITERIA, Violation
from tests.chaos.memory.judge import judge_memory
from tests.chaos.memory.rows import MemoryRows, read_memory
from tests.chaos.projects.judge import judge_projects
from tests.chaos.projects.rows import ProjectRows, read_projects
from tests.chaos.record import Fault, Record
from tests.chaos.schedules.judge import judge_schedules
from tests.chaos.schedules.rows import ScheduleRows, read_schedules
from tests.chaos.steps.judge import judge_steps
from tests.chaos.steps.rows import read_steps
from tests.chaos.webhooks.judge import judge_webhooks
from tests.chaos.webhooks.rows import WebhookRows, read_webhooks
from tests.chaos.workflows.judge import judge_workflows
from tests.chaos.workflows.rows import WorkflowRows, read_workflows

__all__ = ["CRITERIA", "Violation", "judge", "judge_rows", "settle", "tell"]

LOOK_EVERY_SECONDS = 0.5


def settle(database_url: str, *, within: float) -> float | None:
    """Waits until every task has ended, no job is open, no project runs and every end of an agent was gathered: for how
    many seconds, or none when the time is over."""
    began = time.monotonic()
    while (spent := time.monotonic() - began) < within:
        if count_unsettled(database_url) == 0:
            return spent
        time.sleep(LOOK_EVERY_SECONDS)
    return None


def judge(record: Record, database_url: str, *, bound_seconds: float, lease_seconds: float) -> list[Violation]:
    """To be asked when the bound is over, or all is settled before that, while the installation still runs."""
    rows, projects = read_rows(database_url), read_projects(database_url)
    workflows = read_workflows(database_url)
    bounds = {"bound_seconds": bound_seconds, "lease_seconds": lease_seconds}
    found = judge_rows(record, rows, working_for(), projects=projects, workflows=workflows, **bounds)
    webhooks, schedules = read_webhooks(database_url, record.webhooks.directory), read_schedules(database_url)
    memory = read_memory(database_url)
    told = judge_told(record, rows, webhooks=webhooks, schedules=schedules, memory=memory)
    steps = read_steps(database_url, record.books_of_steps)
    return [*found, *told, *judge_steps(record, rows, steps, lease_seconds)]


def judge_told(
    record: Record,
    rows: Rows,
    *,
    webhooks: WebhookRows | None = None,
    schedules: ScheduleRows | None = None,
    memory: MemoryRows | None = None,
) -> list[Violation]:
    """What others hear of tasks, and who starts them: endpoints, schedules, memory."""
    return [
        *judge_webhooks(record, webhooks or WebhookRows()),
        *judge_schedules(record, schedules or ScheduleRows()),
        *judge_memory(rows, memory or MemoryRows()),
    ]


def judge_rows(
    record: Record,
    rows: Rows,
    processes: Sequence[tuple[int, str]],
    *,
    projects: ProjectRows | None = None,
    workflows: WorkflowRows | None = None,
    bound_seconds: float,
    lease_seconds: float,
) -> list[Violation]:
    return [
        *unfinished(record, rows, bound_seconds),
        *completed_wrongly(record, rows),
        *(Violation(COMPLETED_WRONGLY, words, task_id or None) for task_id, words in record.broken_words),
        *over_the_limit(record, rows, lease_seconds),
        *ordered_twice(record, rows),
        *ownerless(rows, is_alive),
        *broken_streams(record, rows),
        *left_alive(record, rows, processes, lease_seconds),
        *judge_projects(record, rows, projects or ProjectRows(), lease_seconds),
        *judge_workflows(record, rows, workflows or WorkflowRows()),
    ]


def tell(violation: Violation, record: Record, database_url: str) -> str:
    """The finding, the fault before it, and the whole history of its task, for somebody who wants to understand it."""
    rows = read_rows(database_url)
    lines = [str(violation), f"  the fault before it: {_fault_before(violation, record)}"]
    if violation.task_id is not None:
        lines += _history(violation.task_id, record, rows)
    return "\n".join(lines)


def _fault_before(violation: Violation, record: Record) -> str:
    before = [fault for fault in record.faults if violation.at is None or fault.began_at <= violation.at]
    if not before:
        return "none"
    fault: Fault = max(before, key=lambda fault: fault.began_at)
    since = "" if violation.at is None else f", {violation.at - fault.began_at:.1f} s before"
    return f"number {fault.number}, {fault.words}, at {_clock(fault.began_at)}{since}"


def _history(task_id: str, record: Record, rows: Rows) -> list[str]:
    row = rows.tasks.get(task_id)
    if row is None:
        return [f"  task {task_id} has no row"]
    accepted = record.accepted.get(task_id)
    origin = f"accepted at {_clock(accepted.at)}, mark {accepted.mark}" if accepted else "its client got no answer"
    told = [(event.at, _event_line(event)) for event in rows.events.get(task_id, ())]
    told += [(fault.began_at, f"* fault {fault.number}: {fault.words}") for fault in record.faults]
    told += [
        (order["at"], f"* ordered at {provider}: {order['state']}, until {_clock(order['ends_at'])}")
        for provider, book in record.books.items()
        for order in book.get("orders", [])
        if accepted is not None and accepted.mark in str(order["prompt"]).split()
    ]
    first = min((event.at for event in rows.events.get(task_id, ())), default=0.0)
    last = max((event.at for event in rows.events.get(task_id, ())), default=0.0)
    lines = [f"    {_clock(at)}  {line}" for at, line in sorted(told) if first - 1 <= at <= last + 1]
    head = f"  task {task_id}: {row.actor} at {row.provider}, {row.status}, attempt {row.attempt} ({origin})"
    return [head, *lines, f"    result: {str(row.result)[:200]}"]


def _event_line(event: object) -> str:
    return " ".join(
        f"{name}={value}"
        for name in ("seq", "type", "attempt", "worker_id", "error")
        if (value := getattr(event, name)) is not None
    )


def _clock(at: float | None) -> str:
    return "never" if at is None else datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S.%f")[:-3]

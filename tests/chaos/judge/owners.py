"""Criteria 5 and 7: after the bound nothing is held by nobody, and no process works for a task that does not run."""

from collections.abc import Callable, Iterator, Sequence

from tests.chaos.judge.rows import EventRow, Rows
from tests.chaos.judge.violation import LEFT_ALIVE, OWNERLESS, Violation
from tests.chaos.record import Record

WORKERS_ARE_COUNTED_EVERY_SECONDS = 75.0
"""A worker's row is neither a slot nor a lease: the janitor looks through them once a minute."""

GRACE_SECONDS = 0.25
"""An end is written when the work is proven dead, so a process may not outlive it at all. The watch takes its time
before it looks, and Postgres reads its clock before it commits: this much is between them on a busy machine."""

ENDS = {"complete", "retry", "stall", "interrupt", "bury", "cancel"}


def ownerless(rows: Rows, is_alive: Callable[[int], bool]) -> Iterator[Violation]:
    pids = {worker.worker_id: worker.pid for worker in rows.workers}
    for task in rows.tasks.values():
        if task.status == "running":
            pid = pids.get(task.worker_id or "")
            owner = "no worker" if pid is None else f"process {pid}, which is {'alive' if is_alive(pid) else 'dead'}"
            if pid is None or not is_alive(pid) or (task.lease_expires_at or 0) < rows.at:
                words = f"task {task.task_id} holds a slot and a lease at {task.provider} by {owner}"
                yield Violation(OWNERLESS, words, task.task_id, rows.at)
        elif task.job_open:
            words = f"task {task.task_id} is {task.status} and holds a slot of {task.provider} for an open job"
            yield Violation(OWNERLESS, words, task.task_id, rows.at)
    for task_id, status in rows.open_jobs:
        task_row = rows.tasks.get(task_id)
        if task_row is None or task_row.has_ended:
            words = f"an order of task {task_id} is still {status}, though its task has ended"
            yield Violation(OWNERLESS, words, task_id, rows.at)
    for worker in rows.workers:
        is_overdue = worker.heartbeat_at < rows.at - WORKERS_ARE_COUNTED_EVERY_SECONDS
        if worker.state in {"active", "stopping"} and is_overdue and not is_alive(worker.pid):
            words = f"worker {worker.worker_id} is called {worker.state}, and its process is dead"
            yield Violation(OWNERLESS, words, None, worker.heartbeat_at)


def left_alive(
    record: Record, rows: Rows, alive_now: Sequence[tuple[int, str]], lease_seconds: float
) -> Iterator[Violation]:
    """Processes that were seen after the end of the attempt that had started them, or that are there at the end."""
    told = set()
    for sighting in record.sightings:
        ended_at = _end_after(rows.events.get(sighting.task_id, ()), sighting.first_at)
        if ended_at is None or sighting.last_at <= ended_at + GRACE_SECONDS:
            continue
        if was_frozen(record, ended_at, sighting.last_at, lease_seconds):
            continue
        told.add((sighting.pid, sighting.task_id))
        late = sighting.last_at - ended_at
        words = f"process {sighting.pid} of task {sighting.task_id} was alive {late:.2f} s after its attempt had ended"
        yield Violation(LEFT_ALIVE, words, sighting.task_id, sighting.last_at)
    for pid, task_id in alive_now:
        row = rows.tasks.get(task_id)
        if row is not None and row.status != "running" and (pid, task_id) not in told:
            words = f"process {pid} is alive at the end, and its task {task_id} is {row.status}"
            yield Violation(LEFT_ALIVE, words, task_id, rows.at)


def _end_after(events: Sequence[EventRow], at: float) -> float | None:
    """When the attempt ended that ran when the process was first seen: a process belongs to one attempt."""
    claims = [event for event in events if event.type == "claim" and event.at <= at]
    if not claims:
        return at if events else None
    ends = [event.at for event in events if event.type in ENDS and event.seq > claims[-1].seq]
    return min(ends, default=None)


def was_frozen(record: Record, ended_at: float, last_at: float, lease_seconds: float) -> bool:
    return any(
        fault.is_host_wide and fault.began_at <= last_at and ended_at <= fault.ended_at + lease_seconds
        and last_at <= fault.ended_at + lease_seconds
        for fault in record.faults
    )  # fmt: skip

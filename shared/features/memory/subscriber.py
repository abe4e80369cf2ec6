"""Records what agents did: an agent event at the end of each life of a task. The moves of an `embed` task change its
embedding job."""

from collections.abc import Sequence
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.features.feature import Feature
from windlass.shared.features.memory.queries import (
    JobChange,
    MovedTask,
    NewEvent,
    change_jobs,
    moved_tasks,
    write_events,
)
from windlass.shared.features.memory.rules import ENDS, data_of, job_error, job_state, text_of, title_of
from windlass.shared.store.outbox import Move


async def handle(db: Database, moves: Sequence[Move]) -> None:
    tasks = await moved_tasks(db, ((move.task_id, move.seq) for move in moves))
    events: list[NewEvent] = []
    jobs: dict[UUID, JobChange] = {}
    for move in moves:
        task = tasks.get((move.task_id, move.seq))
        if task is None:
            continue  # the task was deleted
        if task.actor == "embed":
            # The last move of a task decides: they come in the order of its history.
            error = job_error(move.status, task.error)
            jobs[task.task_id] = JobChange(task.task_id, job_state(move.status), error, move.at)
        elif move.status in ENDS:
            events.append(_event(move, task))
    if events:
        await write_events(db, events)
    if jobs:
        await change_jobs(db, list(jobs.values()))


def _event(move: Move, task: MovedTask) -> NewEvent:
    text = text_of(move.status, task.request, task.outcome, task.error)
    data = data_of(move.status, task.usage, task.error)
    return NewEvent(task, move.life, move.status, title_of(task.request), text, data, move.at)


MEMORY = Feature("memory", handle, subjects_at_once=100)

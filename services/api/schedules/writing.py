"""From what somebody says of a schedule to one that can be stored, or to the problem that names what is wrong."""

from typing import Any

from litestar.datastructures import State

from windlass.services.api.access.auth import Caller
from windlass.services.api.http.bodies import field_problem
from windlass.services.api.http.errors import Problem
from windlass.services.api.tasks.submission import accept
from windlass.services.api.workflows.submission import accept as accept_workflow
from windlass.shared.schedules.definition import Definition
from windlass.shared.schedules.words import Kind
from windlass.shared.store import projects
from windlass.shared.submission.scheduled import (
    NOT_OF_A_SCHEDULE,
    NewSchedule,
    new_schedule,
    start_of_task,
    start_of_workflow,
)


async def prepared(wanted: Definition, name: str, *, owner: str, caller: Caller, state: State) -> NewSchedule:
    """Checked as what it starts would be if it were submitted now."""
    target = wanted.target
    if target.kind == Kind.TASK:
        start = _task(target.task or {}, owner, caller, state)
    elif target.kind == Kind.WORKFLOW:
        start = _workflow(target.workflow or {}, owner, caller, state)
    else:
        assert target.project is not None
        project = await projects.get(state.pool, target.project.id)
        if project is None or project.user_id != owner:
            detail = f"{owner} has no project {target.project.project_id}"
            raise field_problem("/target/project/project_id", "unknown-project", detail)
        start = target.project.model_dump()
    return new_schedule(wanted, name, start, owner=owner)


def _task(task: dict[str, Any], owner: str, caller: Caller, state: State) -> dict[str, Any]:
    for name in NOT_OF_A_SCHEDULE.keys() & task.keys():
        raise field_problem(f"/target/task/{name}", "invalid-schedule", NOT_OF_A_SCHEDULE[name])
    submission = accept(task, caller, state.settings, state.registry.actors, below="/target/task")
    return start_of_task(submission, owner)


def _workflow(workflow: dict[str, Any], owner: str, caller: Caller, state: State) -> dict[str, Any]:
    try:
        wanted = accept_workflow(workflow, caller, state.settings, state.registry.actors, None)
    except Problem as problem:
        for each in problem.errors or ():
            each["pointer"] = f"/target/workflow{each['pointer']}"
        raise
    return start_of_workflow(wanted, owner)

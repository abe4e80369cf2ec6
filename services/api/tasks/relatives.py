"""The parents and workflows that new tasks name: to its submitter, somebody else's is as if it did not exist."""

from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from windlass.services.api.access.auth import Caller
from windlass.services.api.http.errors import Problem
from windlass.shared.concerns import Concern
from windlass.shared.db import Database
from windlass.shared.store import tasks
from windlass.shared.store.tasks import Submission
from windlass.shared.store.workflows import reading
from windlass.shared.submission.graphs import as_id


async def refuse_unknown_parents(
    db: Database, caller: Caller, submissions: Sequence[Submission], *, batch: bool = False
) -> None:
    """Costs one question, and only a submission that names a parent. (Dependencies are looked up by the submit.)"""
    parents = {each.parent_task_id for each in submissions if each.parent_task_id is not None}
    if not parents:
        return
    unknown = parents - await tasks.existing(db, list(parents), of_user=caller.own)
    errors = [
        {
            "pointer": f"/tasks/{number}/parent_task_id" if batch else "/parent_task_id",
            "detail": f"no such task: {each.parent_task_id}",
        }
        for number, each in enumerate(submissions)
        if each.parent_task_id in unknown
    ]
    if errors:
        detail = f"no such task: {', '.join(str(each) for each in sorted(unknown))}"
        raise Problem(422, "unknown-parent", detail, errors=errors)


async def joined_to_workflows(db: Database, submissions: Sequence[Submission]) -> list[Submission]:
    """Whoever names a workflow of the task's own user joins it, and is counted; any other name is a label. Costs one
    question, and only a submission that names something that may be one."""
    named = {each: id_ for each in {each.workflow_id for each in submissions} if each and (id_ := as_id(each))}
    if not named:
        return list(submissions)
    found: dict[str, set[UUID]] = {}
    for owner in {each.user_id for each in submissions if each.workflow_id in named}:
        found[owner] = await reading.own(db, list(named.values()), of_user=owner)
    return [
        replace(
            each,
            workflow_id=str(named[each.workflow_id]),
            group_id=named[each.workflow_id],
            concerns=each.concerns | Concern.WORKFLOW.value,
        )
        if each.workflow_id in named and named[each.workflow_id] in found[each.user_id]
        else each
        for each in submissions
    ]

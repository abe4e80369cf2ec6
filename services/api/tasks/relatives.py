"""The parents that new tasks name: to its submitter, somebody else's task is as if it did not exist."""

from collections.abc import Sequence

from windlass.services.api.access.auth import Caller
from windlass.services.api.http.errors import Problem
from windlass.shared.db import Database
from windlass.shared.store import tasks
from windlass.shared.store.tasks import Submission


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

"""The operations of the engine, of workflows and of projects that a schedule uses."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from windlass.shared.db import Database, as_json
from windlass.shared.features.projects import operations as projects
from windlass.shared.features.projects import turn as project_turn
from windlass.shared.features.projects.queries import pending_of_schedule
from windlass.shared.features.schedules.runs import OpenRun
from windlass.shared.features.workflows import operations as workflows
from windlass.shared.features.workflows import queries as workflow_queries
from windlass.shared.features.workflows import turn as workflow_turn
from windlass.shared.store.functions import named


class Reports:
    """Turns of projects and workflows within a turn of a schedule, reported after its commit."""

    def __init__(self) -> None:
        self.projects: list[project_turn.Turn] = []
        self.workflows: list[workflow_turn.Turn] = []

    def write(self) -> None:
        for project in self.projects:
            project.report()
        for workflow in self.workflows:
            workflow.report()

    def marked(self) -> tuple[int, int]:
        return len(self.projects), len(self.workflows)

    def forget_since(self, mark: tuple[int, int]) -> None:
        """They were rolled back."""
        del self.projects[mark[0] :]
        del self.workflows[mark[1] :]


async def store_task(db: Database, start: dict[str, Any]) -> str | None:
    query = f"SELECT refusal FROM {named('store_tasks')}($1::text::jsonb)"  # noqa: S608 - a name of our own
    refusal: str | None = await db.fetchval(query, as_json([start]))
    return refusal


async def store_workflow(db: Database, start: dict[str, Any]) -> None:
    await db.execute(
        f"SELECT {named('store_workflow')}($1, $2::text::jsonb, $3::text::jsonb, $4::text::jsonb)",
        start["workflow"]["workflow_id"],
        *(as_json(start[name]) for name in ("workflow", "nodes", "submissions")),
    )


async def settle_started(db: Database, schedule_id: UUID, reports: Reports) -> None:
    """Handles what has happened to the projects and workflows that the schedule started."""
    for project_id in await pending_of_schedule(db, schedule_id):
        await projects.settle(db, project_id, reports=reports.projects)
    for workflow_id in await workflow_queries.pending_of_schedule(db, schedule_id):
        await workflows.settle(db, workflow_id, reports=reports.workflows)


async def start_project(
    db: Database, owner: str, start: dict[str, Any], reports: Reports
) -> tuple[str | None, UUID | None]:
    """Why it was not started, or else its run. A project of another user is left alone."""
    project_id = UUID(start["project_id"])
    is_theirs = "SELECT EXISTS (SELECT 1 FROM projects WHERE project_id = $1 AND ($2 = 'system' OR user_id = $2))"
    if not await db.fetchval(is_theirs, project_id, owner):
        return "project-not-found", None
    started = await projects.start(db, project_id, mode=start["mode"], reports=reports.projects)
    return started.refusal, None if started.refusal else started.run_id


async def cancel(db: Database, runs: Sequence[OpenRun], reports: Reports) -> None:
    """In the order of locks: projects, workflows, tasks."""
    for project_id in sorted({run.project_id for run in runs if run.project_id is not None}):
        await projects.force_stop(db, project_id, reports=reports.projects)
    for workflow_id in sorted(run.workflow_id for run in runs if run.workflow_id is not None):
        await workflows.cancel(db, workflow_id, reports=reports.workflows)
    task_ids = sorted(run.task_id for run in runs if run.task_id is not None)
    if task_ids:
        await db.execute(f"SELECT 1 FROM {named('cancel_tasks')}($1, 'schedule')", task_ids)  # noqa: S608

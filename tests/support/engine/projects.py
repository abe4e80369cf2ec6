"""Projects on a real database, with short ways to say what a test means."""

from typing import Any
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from tests.support.engine.store import Engine, a_submission
from windlass.shared.features.projects import backlog, operations
from windlass.shared.features.projects.operations import NewProject
from windlass.shared.store import projects
from windlass.shared.store.projects import ItemRead, RunRead, Status
from windlass.shared.store.rows import ProjectEventRow
from windlass.shared.store.tasks import Claimed

PER_RUN = ("task_id", "user_id")
"""What of a submission is given when the run begins."""


def an_item(title: str, **fields: Any) -> dict[str, Any]:
    """A probe, as the api has checked it."""
    complete = msgspec.to_builtins(a_submission(**fields))
    task = {name: value for name, value in complete.items() if name not in PER_RUN}
    return {"item_id": uuid7(), "title": title, "given": {}, "task": task}


class Project:
    """One of Ann's, with items that are called by their titles."""

    def __init__(self, engine: Engine, project_id: UUID) -> None:
        self.engine = engine
        self.project_id = project_id
        self.ids: dict[str, UUID] = {}

    @classmethod
    async def made(cls, engine: Engine, *titles: str, on_failure: str = "stop", **fields: Any) -> "Project":
        wanted = NewProject(task_id=uuid7(), user_id="ann", name="site", on_failure=on_failure)
        created = await operations.create(engine.pool, wanted)
        project = cls(engine, created.project_id)
        await project.add(*titles, **fields)
        return project

    async def add(self, *titles: str, **fields: Any) -> None:
        items = [an_item(title, **fields) for title in titles]
        self.ids |= {item["title"]: item["item_id"] for item in items}
        assert await backlog.add(self.engine.pool, self.project_id, items) is None

    async def start(self, mode: str = "single", item: str | None = None) -> str | None:
        item_id = None if item is None else self.ids[item]
        return (await operations.start(self.engine.pool, self.project_id, mode=mode, item_id=item_id)).refusal

    async def stop(self) -> None:
        await operations.stop(self.engine.pool, self.project_id)

    async def force_stop(self) -> bool:
        await operations.force_stop(self.engine.pool, self.project_id)
        await operations.cancel_descendants(self.engine.pool, self.project_id)
        return await operations.prove_stopped(self.engine.pool, self.project_id)

    async def move(self, item: str, *, before: str) -> str | None:
        return await backlog.change(self.engine.pool, self.project_id, self.ids[item], {}, before=self.ids[before])

    async def edit(self, item: str, **fields: Any) -> str | None:
        changes = {"given": {}, "task": an_item(item, **fields)["task"]}
        return await backlog.change(self.engine.pool, self.project_id, self.ids[item], changes)

    async def skip(self, item: str) -> str | None:
        return await backlog.skip(self.engine.pool, self.project_id, self.ids[item])

    async def requeue(self, item: str) -> str | None:
        return await backlog.requeue(self.engine.pool, self.project_id, self.ids[item])

    async def delete(self, item: str) -> str | None:
        return await backlog.delete(self.engine.pool, self.project_id, self.ids[item])

    async def status(self) -> Status:
        """As the api reads it: after everything that has happened until now."""
        row = await operations.caught_up(self.engine.pool, self.engine.pool, self.project_id)
        assert row is not None
        return row

    async def state(self) -> tuple[str, str | None]:
        row = await self.status()
        return row.state, row.stop_reason

    async def task(self) -> UUID:
        """The current run's."""
        task_id = (await self.status()).current_task_id
        assert task_id is not None
        return task_id

    async def claimed(self) -> Claimed:
        return await self.engine.start(await self.task())

    async def finish(self, transition: str = "complete", **fields: Any) -> UUID:
        """A worker takes the run's task and ends it so."""
        attempt = await self.claimed()
        await self.engine.finish(attempt, transition, **fields)
        return attempt.task_id

    async def items(self) -> dict[str, str]:
        """By title the state of each, in the order of the backlog."""
        return {str(row.title): row.state for row in await self.rows()}

    async def rows(self) -> list[ItemRead]:
        await self.status()
        return await projects.items(self.engine.pool, self.project_id, limit=1000)

    async def running(self) -> str | None:
        """The title of the item that the open run is bound to."""
        run = next((run for run in await self.runs() if run.ended_at is None), None)
        titles = {item_id: title for title, item_id in self.ids.items()}
        return None if run is None else titles[run.item_id]

    async def runs(self) -> list[RunRead]:
        """The oldest first."""
        await self.status()
        return (await projects.runs(self.engine.pool, self.project_id, limit=1000))[::-1]

    async def ends(self) -> list[str]:
        return [run.state for run in await self.runs()]

    async def history(self) -> list[ProjectEventRow]:
        await self.status()
        return await projects.events(self.engine.pool, self.project_id, after=0, limit=10_000)

    async def story(self) -> list[str]:
        return [event.type for event in await self.history()]

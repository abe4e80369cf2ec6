"""What is done to projects."""

from tests.support.engine.locks.moves.driven import at, move
from tests.support.engine.locks.yard import Yard
from windlass.shared.features.handling import handle_pending
from windlass.shared.features.projects import operations
from windlass.shared.features.projects.subscriber import PROJECTS
from windlass.shared.store import outbox


@move
@at("projects")
async def run_and_stop(yard: Yard) -> None:
    """Of which either may find that nobody has taken the run."""
    project = yard.project()
    await project.start(yard.chance.choice(["single", "loop"]))
    if yard.chance.random() < 0.5:
        await project.stop()


@move
@at("projects")
async def edit_the_backlog(yard: Yard) -> None:
    project = yard.project()
    one, other = yard.chance.sample(list(project.ids), 2)
    match yard.chance.randrange(4):
        case 0:
            await project.move(one, before=other)
        case 1:
            await project.edit(one, provider="wide", priority=1)
        case 2:
            await project.skip(one)
        case _:
            await project.requeue(one)


@move
@at("projects")
async def force_stop(yard: Yard) -> None:
    await yard.project().force_stop()


@move
@at("projects")
async def follow_the_runs(yard: Yard) -> None:
    """As the orchestrator does for each subject, and the api before it answers."""
    page = await outbox.walk(yard.pool, after=None, at_most=3, feature=PROJECTS.name)
    for _, project_id in page.keys:
        await handle_pending(yard.pool, PROJECTS, [project_id])
    await operations.settle(yard.pool, yard.project().project_id)


@move
@at("projects")
async def revive_a_run(yard: Yard) -> None:
    project = yard.project()
    ended = [run.task_id for run in await project.runs() if run.ended_at is not None]
    if ended:
        await operations.revive(yard.pool, project.project_id, yard.chance.choice(ended))

"""What is done to projects."""

from tests.support.engine.locks.moves.driven import at, move
from tests.support.engine.locks.yard import Yard
from windlass.shared.store.projects import looking_after


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
async def look_after_projects(yard: Yard) -> None:
    await looking_after.recheck(yard.pool)
    await looking_after.say_events(yard.pool)
    await looking_after.choose_anew(yard.pool, yard.project().project_id)

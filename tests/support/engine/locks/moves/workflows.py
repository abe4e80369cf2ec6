"""What is done to workflows, and to their tasks."""

from tests.support.engine.locks.moves.driven import NERVOUS, at, move
from tests.support.engine.locks.yard import Yard
from tests.support.engine.store import an_ending
from tests.support.engine.workflows import in_a_workflow
from windlass.shared.concerns import Concern
from windlass.shared.features.handling import handle_pending
from windlass.shared.features.workflows import operations
from windlass.shared.features.workflows.operations import Resumption
from windlass.shared.features.workflows.subscriber import WORKFLOWS
from windlass.shared.store import outbox, tasks
from windlass.shared.store.workflows import approvals
from windlass.shared.store.workflows.approvals import Decision


@move
@at("workflows")
async def join_workflows(yard: Yard) -> None:
    """Both in one call, and what they wait for is the other's."""
    await yard.a_flow()
    wanted = [in_a_workflow(flow.workflow_id, depends_on=yard.some(2)) for flow in [*yard.flows, *yard.flows]]
    yard.chance.shuffle(wanted)
    await yard.submit(wanted)


@move
@at("workflows")
async def escalate(yard: Yard) -> None:
    """What runs of both fails in one call."""
    endings = [an_ending(each, "bury") for each in yard.attempts if each.concerns & Concern.WORKFLOW]
    yard.chance.shuffle(endings)
    await tasks.end(yard.pool, endings[:4], NERVOUS)


@move
@at("workflows")
async def resume_or_cancel_workflow(yard: Yard) -> None:
    workflow_id, mode = yard.flow().workflow_id, yard.chance.choice([None, *Resumption])
    await (operations.resume(yard.pool, workflow_id, mode) if mode else operations.cancel(yard.pool, workflow_id))


@move
@at("workflows")
async def decide(yard: Yard) -> None:
    """Or find that nobody has."""
    asked, decision = yard.flow().ids["asked"], yard.chance.choice([None, *Decision])
    if decision is None:
        await approvals.expire(yard.pool)
    else:
        await approvals.decide(yard.pool, asked, decision, by="ann", comment=None)


@move
@at("workflows")
async def expand(yard: Yard) -> None:
    """Nodes, as soon as their lists are there."""
    ours = [flow.ids["list"] for flow in yard.flows]
    lists = [an_ending(each, "complete", result=[1, 2]) for each in yard.attempts if each.task_id in ours]
    await tasks.end(yard.pool, lists, NERVOUS)
    await operations.settle(yard.pool, yard.flow().workflow_id)


@move
@at("workflows")
async def follow_the_tasks(yard: Yard) -> None:
    """As the orchestrator does for each workflow, and the api before it answers; and the check finds nothing."""
    page = await outbox.walk(yard.pool, after=None, at_most=3, feature=WORKFLOWS.name)
    for _, workflow_id in page.keys:
        await handle_pending(yard.pool, WORKFLOWS, [workflow_id])
    await operations.settle(yard.pool, yard.flow().workflow_id)
    assert await operations.count_drift(yard.pool) == []

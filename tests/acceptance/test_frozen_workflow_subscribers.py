"""Turns of workflows that are frozen before any of their calls: no end of another task of the workflow waits for them,
and the workflow continues afterwards."""

import time
from collections.abc import Awaitable, Callable
from typing import Any

from tests.support.engine.store import Engine, on_the_engine
from tests.support.engine.workflows import AWorkflow, a_workflow, tidy_up
from tests.support.freezing_subscriber import all_ended, all_frozen, frozen_at

LONGEST_SECONDS = 2.5
CALLS_OF_AN_ESCALATION = 7
"""Begin, lock of the subject, rows, lock of the workflow, its counts and holds, delete, commit."""
CALLS_OF_AN_EXPANSION = 11
"""Begin, lock of the subject, rows, lock of the workflow, the list, its tasks, the nodes, the counts again, the
workflow's own, delete, commit."""


async def ends_beside_frozen_turns(
    engine: Engine, calls: int, made: Callable[[], Awaitable[AWorkflow]], first: str, transition: str, **fields: Any
) -> list[AWorkflow]:
    """For each place a workflow of its own: the end of its task `first` makes a turn, which is frozen there, and then
    its task `runs` ends."""
    flows = [await made() for _ in range(calls)]
    for place, flow in enumerate(flows, 1):
        runs = await flow.start("runs")
        await flow.finish(first, transition, **fields)
        process = frozen_at(engine.database_url, "workflow", flow.workflow_id, place)
        try:
            await all_frozen([process])
            began = time.monotonic()
            assert await engine.finish(runs) == "completed"
            assert time.monotonic() - began < LONGEST_SECONDS
        finally:
            await all_ended([process])
        await tidy_up(engine)
    return flows


@on_the_engine
async def test_no_end_waits_for_a_frozen_escalation(engine: Engine) -> None:
    """The turn holds `behind`, which the end unblocks."""

    async def made() -> AWorkflow:
        graph: dict[str, list[str]] = {"bad": [], "runs": [], "waits": [], "behind": ["runs"]}
        return await a_workflow(engine, graph, failure_threshold=1)

    for flow in await ends_beside_frozen_turns(engine, CALLS_OF_AN_ESCALATION, made, "bad", "bury"):
        assert (await flow.status(), await flow.held()) == ("escalated", {"waits", "behind"})
        expected = {"bad": "dead", "runs": "completed", "waits": "queued", "behind": "queued"}
        assert await flow.statuses() == expected
        assert await flow.story() == ["submit", "escalate"]


@on_the_engine
async def test_no_end_waits_for_a_frozen_expansion(engine: Engine) -> None:
    """`join` waits for the list and for the task that ends."""

    async def made() -> AWorkflow:
        graph: dict[str, list[str]] = {"list": [], "runs": [], "pages": [], "join": ["pages", "runs"]}
        return await a_workflow(engine, graph, for_each={"pages": ("list", "/echo")})

    parts = {"echo": ["a", "b"]}
    for flow in await ends_beside_frozen_turns(engine, CALLS_OF_AN_EXPANSION, made, "list", "complete", result=parts):
        statuses = {"list": "completed", "runs": "completed", "pages": "running", "join": "blocked"}
        assert await flow.statuses() == {**statuses, "pages[0]": "queued", "pages[1]": "queued"}
        for key in ("pages[0]", "pages[1]"):
            await flow.finish(key)
        await tidy_up(engine)
        await flow.finish("join")
        assert await flow.status() == "completed"

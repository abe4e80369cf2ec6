"""Long chains of dependents, and a parent that dies, lives and dies again."""

import time
from itertools import pairwise

from uuid_utils.compat import uuid7

from tests.support.engine.store import Engine, a_submission, on_the_engine
from tests.support.engine.workflows import a_workflow, tidy_up
from windlass.shared.store import tasks
from windlass.shared.store.tasks import dependencies

LENGTH = 1000
LONGEST_SECONDS = 30
"""Far more than it takes, about half a second: the machine may be busy."""


@on_the_engine
async def test_a_chain_of_a_thousand_is_buried_in_a_few_calls(engine: Engine) -> None:
    ids = [uuid7() for _ in range(LENGTH + 1)]
    chain = [a_submission(task_id=ids[0])]
    chain += [a_submission(task_id=child, depends_on=[parent]) for parent, child in pairwise(ids)]
    await tasks.submit(engine.pool, chain)
    attempt = await engine.start(ids[0])
    began = time.monotonic()
    await engine.finish(attempt, "bury")
    calls = 0
    while await dependencies.settle_next(engine.pool):
        calls += 1
    assert await engine.count("status = 'dead'") == LENGTH + 1
    assert calls <= LENGTH // 500 + 1
    assert time.monotonic() - began < LONGEST_SECONDS


@on_the_engine
async def test_a_parent_that_dies_lives_and_dies_again_leaves_its_dependents_buried(engine: Engine) -> None:
    flow = await a_workflow(engine, {"a": [], "b": ["a"], "c": ["b"], "other": []})
    for _ in range(2):
        await flow.finish("a", "bury")
        await engine.revive(flow.ids["a"])
    await flow.finish("a", "bury")
    await tidy_up(engine)
    assert await flow.statuses() == {"a": "dead", "b": "dead", "c": "dead", "other": "queued"}
    row = await flow.row()
    assert (row.status, row.failures, row.dead, row.live) == ("running", 3, 3, 1)

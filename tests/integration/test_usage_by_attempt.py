"""What each attempt has cost, also one whose worker died, and all of them together."""

from tests.support.engine.store import Engine, on_the_engine
from windlass.shared.store import tasks
from windlass.shared.store.reading import usage


@on_the_engine
async def test_each_attempt_has_its_own_figures_and_they_add_up(engine: Engine) -> None:
    first = await engine.running()
    await engine.say(first, usage={"cost_usd": 0.1, "prompt_tokens": 7})
    await engine.finish(first, "retry", usage={"cost_usd": 0.2})
    await engine.become_due(first.task_id)
    lost = await engine.start(first.task_id)
    await engine.say(lost, usage={"cost_usd": 0.5})
    await engine.lapse(lost.task_id, seconds_ago=60)
    await tasks.stall(engine.pool)
    await engine.become_due(first.task_id)
    free = await engine.start(first.task_id)
    await engine.finish(free, "interrupt")
    last = await engine.start(first.task_id)
    await engine.say(last, usage={"cost_usd": 0.3, "completion_tokens": 4})
    row = await engine.row(first.task_id)
    assert row.usage == {"cost_usd": 1.1, "prompt_tokens": 7, "completion_tokens": 4}
    spent = await usage.by_attempt(engine.pool, row.task_id, attempt=row.attempt, total=row.usage)
    assert spent == [
        {"attempt": 1, "cost_usd": 0.3, "prompt_tokens": 7, "completion_tokens": None},
        {"attempt": 2, "cost_usd": 0.5, "prompt_tokens": 0, "completion_tokens": None},
        {"attempt": 4, "cost_usd": 0.3, "prompt_tokens": 0, "completion_tokens": 4},
    ]


@on_the_engine
async def test_a_task_that_cost_nothing_says_nothing_of_it(engine: Engine) -> None:
    task_id = await engine.completed()
    assert all("usage_so_far" not in event.data for event in await engine.history(task_id))

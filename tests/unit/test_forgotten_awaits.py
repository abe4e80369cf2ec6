"""A forgotten `await` ends the task at once, with an error that names the line."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from windlass.shared.errors import NotAwaited
from windlass.testing import attempt

pytestmark = pytest.mark.filterwarnings("error")


async def call_model(text: str) -> str:
    await asyncio.sleep(0)
    return text


async def returned(*, context: Any) -> Any:
    return call_model("hi")  # here


def returned_by_a_plain_actor(*, context: Any) -> Any:
    return call_model("hi")  # here


async def inside_the_result(*, context: Any) -> Any:
    return {"drafts": [call_model("hi")]}  # here


async def step_returned(*, context: Any) -> Any:
    return context.step("draft", call_model, "hi")  # here


async def step_dropped(*, context: Any) -> Any:
    context.step("draft", call_model, "hi")  # here


async def sleep_dropped(*, context: Any) -> Any:
    context.sleep(5)  # here


async def inside_a_step(*, context: Any) -> Any:
    async def work() -> dict[str, Any]:
        return {"draft": call_model("hi")}  # here

    return await context.step("draft", work)


async def in_a_child(*, context: Any) -> Any:
    await context.submit("probe", {"result": call_model("hi")})  # here


async def in_a_checkpoint(*, context: Any) -> Any:
    context.save({"draft": call_model("hi")})  # here


@pytest.mark.parametrize(
    ("actor", "message"),
    [
        (returned, r"the result is not a value but the coroutine call_model\(…\)"),
        (returned_by_a_plain_actor, r"the result is not a value but the coroutine call_model\(…\)"),
        (inside_the_result, "the result at /drafts/0 is not a value"),
        (step_returned, r"context.step\('draft', …\) was never awaited"),
        (step_dropped, r"context.step\('draft', …\) was never awaited"),
        (sleep_dropped, r"context.sleep\(5\) was never awaited"),
        (inside_a_step, "the result of step 'draft' at /draft is not a value"),
        (in_a_child, "at /payload/result is not a value"),
        (in_a_checkpoint, "the checkpoint at /draft is not a value"),
    ],
)
def test_the_error_names_the_line(actor: Callable[..., Any], message: str) -> None:
    code = actor.__code__
    lines = Path(__file__).read_text().splitlines()
    line = next(n for n in range(code.co_firstlineno, len(lines)) if lines[n - 1].endswith("# here"))
    with attempt(actor) as run:
        assert run.status == "dead"
        with pytest.raises(NotAwaited, match=rf"^test_forgotten_awaits.py:{line}: `await` is missing: .*(?:{message})"):
            raise run.error or AssertionError


async def gathered(*, context: Any) -> list[str]:
    return list(await asyncio.gather(*(context.step(f"step {n}", call_model, str(n)) for n in range(3))))


async def in_tasks(*, context: Any) -> list[str]:
    async with asyncio.TaskGroup() as group:
        started = [group.create_task(context.step(f"step {n}", call_model, str(n))) for n in range(3)]
    return [each.result() for each in started]


@pytest.mark.parametrize("actor", [gathered, in_tasks])
def test_steps_may_be_awaited_together(actor: Callable[..., Any]) -> None:
    with attempt(actor) as run:
        assert run.result == ["0", "1", "2"]


async def fails(*, context: Any) -> None:
    context.step("draft", call_model, "hi")
    raise ValueError("its own error")


def test_the_actor_s_own_error_comes_first() -> None:
    with attempt(fails) as run:
        assert isinstance(run.error, ValueError)

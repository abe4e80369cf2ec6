"""What a step may be called and may come to, said in a sentence that helps."""

import asyncio
import functools
from typing import Any

import pytest

from windlass.shared.actors import step_rules
from windlass.shared.actors.step_rules import StepBook, inside, step_under_way
from windlass.shared.errors import InvalidStep, ResultTooDeep, ResultTooLarge


async def later() -> None: ...


class Later:
    async def __call__(self) -> None: ...


@pytest.mark.parametrize("name", ["", "x" * 201, 7, None])
def test_a_name_is_short_text(name: Any) -> None:
    with pytest.raises(InvalidStep, match="1 to 200 characters"):
        StepBook().begin(name)


def test_a_result_that_json_cannot_hold_names_the_step() -> None:
    with pytest.raises(InvalidStep, match=r"step 'ask' returned something that JSON cannot hold .*object"):
        StepBook().fit("ask", object())


def test_what_is_nested_too_deep_is_refused() -> None:
    deep: Any = None
    for _ in range(65):
        deep = [deep]
    with pytest.raises(ResultTooDeep, match="step 'ask'"):
        StepBook().fit("ask", deep)


def test_all_steps_together_have_a_cap() -> None:
    book = StepBook()
    book.remember({"before": "x" * 400_000})
    book.fit("one", "x" * 500_000)
    with pytest.raises(ResultTooLarge) as refused:
        book.fit("two", "x" * 200_000)
    assert refused.value.details == {
        "step": "two", "size_bytes": 200_002, "before_bytes": 900_004, "limit_bytes": 1_000_000,
    }  # fmt: skip
    assert book.fit("three", (1, 2)) == b"[1,2]", "what fits is still kept"


@pytest.mark.parametrize("function", [later, functools.partial(later), Later(), asyncio.to_thread])
def test_async_functions_are_known_in_each_of_their_shapes(function: Any) -> None:
    with pytest.raises(InvalidStep, match="make the actor `async def`"):
        step_rules.refuse_async("one", function)
    step_rules.refuse_plain("one", function)


def test_a_plain_function_in_an_async_actor_is_told_the_way() -> None:
    with pytest.raises(InvalidStep, match=r'await context.step\("count", asyncio.to_thread, sorted, …\)'):
        step_rules.refuse_plain("count", sorted)
    step_rules.refuse_async("count", sorted)


def test_a_plain_function_that_only_makes_a_coroutine_is_refused() -> None:
    with pytest.raises(InvalidStep, match="something to await"):
        step_rules.refuse_awaitable("one", later())


def test_what_runs_inside_a_step_knows_it_also_in_asyncio_s_threads() -> None:
    async def ask() -> tuple[str, str]:
        with inside("draft"):
            return await asyncio.to_thread(step_under_way), step_under_way()

    assert asyncio.run(ask()) == ("draft", "draft")
    assert step_under_way() == ""

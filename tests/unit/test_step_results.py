"""A step's result has the type that its function is annotated with, also in a later attempt that reads it back."""

import asyncio
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict
from uuid import UUID

import pytest
from pydantic import BaseModel, Field

from windlass.shared.errors import InvalidStep
from windlass.testing import attempt

if TYPE_CHECKING:
    from pathlib import PurePath as OnlyForTheTypeChecker


class Colour(Enum):
    RED = "red"


class Order(BaseModel):
    account: str = Field(alias="accountId")
    due: datetime


class Refund(BaseModel):
    reason: str


@dataclass
class Size:
    width: int
    orders: list[Order] = field(default_factory=list)


class Corner(NamedTuple):
    x: int
    y: int


class Words(TypedDict):
    count: int


DUE = datetime(2026, 11, 18, 12, 30, tzinfo=UTC)
ORDER = Order(accountId="a", due=DUE)


def size() -> Size:
    return Size(3, [ORDER])


def order() -> Order:
    return ORDER


def pair() -> tuple[int, datetime]:
    return 3, DUE


def colour() -> Colour:
    return Colour.RED


def words() -> Words:
    return {"count": 3}


def corner() -> Corner | None:
    return Corner(1, 2)


def either() -> Order | Refund:
    return Refund(reason="late")


def by_number() -> dict[int, set[str]]:
    return {1: {"a"}}


def rest() -> list[tuple[UUID, Decimal, timedelta, bytes]]:
    return [(UUID(int=1), Decimal("1.5"), timedelta(seconds=3), b"\0\1")]


def nothing() -> None: ...


def unannotated():  # type: ignore[no-untyped-def]
    return (1, 2)


def only_for_the_type_checker() -> "OnlyForTheTypeChecker":
    return [1]  # type: ignore[return-value]


class Measuring:
    def __call__(self) -> Size:
        return size()

    def measure(self) -> Size:
        return size()


RESULTS: list[tuple[Callable[..., Any], Any]] = [
    (size, size()),
    (functools.partial(size), size()),
    (Measuring(), size()),
    (Measuring().measure, size()),
    (functools.partial(Refund, reason="late"), Refund(reason="late")),
    (order, ORDER),
    (pair, pair()),
    (colour, Colour.RED),
    (words, words()),
    (corner, Corner(1, 2)),
    (either, either()),
    (by_number, by_number()),
    (rest, rest()),
    (nothing, None),
    (unannotated, [1, 2]),
    (only_for_the_type_checker, [1]),
]


@pytest.mark.parametrize(("function", "expected"), RESULTS)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_result_has_the_annotated_type_in_each_attempt(
    function: Callable[..., Any], expected: Any, *, is_async: bool
) -> None:
    seen: list[Any] = []

    def plain(*, context: Any) -> None:
        seen.append(context.step("one", function))
        context.step("two", lambda: 2)

    async def awaited(*, context: Any) -> None:
        seen.append(await context.step("one", asyncio.to_thread, function))
        await context.step("two", asyncio.sleep, 0)

    with attempt(awaited if is_async else plain) as run:
        run.crash_after("two").again().finish()
    assert seen == [expected, expected]
    assert [type(each) for each in seen] == [type(expected), type(expected)]


def wrong() -> Size:
    return {"width": "three"}  # type: ignore[return-value]


def hidden() -> "OnlyForTheTypeChecker":
    return (1, 2)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (wrong, r"step 'one' returned a value .* annotation of wrong \(.*test_step_results.py:\d+\): Expected `int`"),
        (hidden, r"step 'one': .*hidden .*OnlyForTheTypeChecker.*outside `if TYPE_CHECKING:`"),
    ],
)
def test_a_value_that_does_not_fit_is_a_permanent_error(function: Callable[..., Any], message: str) -> None:
    with attempt(lambda context: context.step("one", function)) as run:
        assert run.status == "dead"
        assert run.steps == []
        with pytest.raises(InvalidStep, match=message):
            raise run.error or AssertionError


def test_a_stored_result_that_no_longer_fits_is_told_apart() -> None:
    functions: list[Callable[..., Any]] = [pair, size]

    def actor(*, context: Any) -> None:
        context.step("one", functions.pop(0))

    with attempt(actor) as run:
        run.crash_after("one").again()
        assert "the stored result of step 'one' does not fit the return annotation of size" in str(run.error)
        assert run.status == "dead"

"""Finding a lost order in a provider's list."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.providers.small_server import on_a_loop
from windlass.shared.providers import finding
from windlass.shared.providers.base import CannotTell, Found, NotThere
from windlass.shared.providers.finding import MOST_PAGES, Listed, look, look_until_settled

INTENDED = datetime(2026, 11, 16, 12, 0, 0, 123456, tzinfo=UTC)


def job(name: str, seconds: float, prompt: str = "a lighthouse") -> Listed:
    """Created so many seconds after the intent."""
    return Listed(name, prompt, INTENDED + timedelta(seconds=seconds))


def outcome(*pages: list[Listed]) -> Found | NotThere | CannotTell:
    async def page(number: int) -> list[Listed]:
        return pages[number] if number < len(pages) else []

    return asyncio.run(look(page, prompt="a lighthouse\n", intended_at=INTENDED))


OTHER = job("other", 1, prompt="a harbour")
LONG_AGO = job("old", -3600)


def test_the_one_order_with_the_prompt_since_the_intent_is_ours() -> None:
    assert outcome([job("ours", 2), OTHER, LONG_AGO]) == Found("ours")
    assert outcome([OTHER], [job("ours", 0.5), LONG_AGO]) == Found("ours")


def test_an_order_in_the_very_millisecond_of_the_intent_is_ours() -> None:
    at = INTENDED.isoformat(timespec="milliseconds").removesuffix("+00:00")
    assert outcome([Listed.of("ours", "a lighthouse", at)]) == Found("ours")


def test_without_one_it_is_not_there() -> None:
    assert isinstance(outcome([OTHER, LONG_AGO]), NotThere)
    assert isinstance(outcome([]), NotThere)


@pytest.mark.parametrize(
    "listed",
    [
        [job("one", 3), job("two", 2)],
        [job("one", 3), job("shortly-before", -5)],
        [job("shortly-before", -5)],
        [job("old", -3600), job("not-newest-first", 3)],
    ],
    ids=["two", "one and one before", "one before", "unsorted"],
)
def test_what_could_be_somebody_else_s_leaves_it_open(listed: list[Listed]) -> None:
    assert isinstance(outcome(listed), CannotTell)


def test_a_list_that_does_not_end_leaves_it_open() -> None:
    assert isinstance(outcome(*[[OTHER]] * (MOST_PAGES + 1)), CannotTell)


@on_a_loop
async def test_an_order_that_is_still_on_its_way_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "LOOK_AGAIN_SECONDS", 0.1)
    intended_at, looks = datetime.now(UTC), 0

    async def page(number: int) -> list[Listed]:
        nonlocal looks
        looks += number == 0
        return [Listed("ours", "a lighthouse", datetime.now(UTC))] if looks > 1 and number == 0 else []

    found = await look_until_settled(page, prompt="a lighthouse", intended_at=intended_at, settled_seconds=60)
    assert found == Found("ours")
    assert looks == 2
    long_ago = intended_at - timedelta(hours=1)
    there_is_none = await look_until_settled(page, prompt="a ship", intended_at=long_ago, settled_seconds=60)
    assert isinstance(there_is_none, NotThere)

"""How places are shared between fresh tasks and retries: exactly, spread out, and all of them."""

import random

import pytest

from tests.support.engine.dispatching import Shares, shared_between_lanes
from tests.support.engine.store import Engine, on_the_engine
from windlass.shared.toml_tables import LaneSettings


@pytest.mark.parametrize("credit", [0, 30, 70, 99])
@on_the_engine
async def test_one_place_at_a_time_gives_each_lane_its_share_spread_out(engine: Engine, credit: int) -> None:
    retries = []
    for _ in range(60):
        one = await shared_between_lanes(engine, 1, 500, 500, credit=credit)
        assert one.fresh + one.retry == 1
        assert 0 <= one.credit < 100
        credit = one.credit
        retries.append(one.retry)
    assert all(sum(retries[at : at + 10]) == 3 for at in range(50))


@on_the_engine
async def test_neither_lane_starves_however_they_are_set(engine: Engine) -> None:
    for percent in (1, 5, 33, 50, 99):
        share = LaneSettings(retry_percent=(percent, percent, percent)).retry_share(200)
        assert (await shared_between_lanes(engine, 200, 200, 200, share)).retry == 200 * percent // 100


@on_the_engine
async def test_no_place_stays_empty_and_no_lane_gets_more_than_it_has(engine: Engine) -> None:
    chance = random.Random(37)
    for _ in range(200):
        places, fresh_due, retry_due, share, credit = (chance.randrange(most) for most in (40, 30, 30, 100, 100))
        found = await shared_between_lanes(engine, places, fresh_due, retry_due, share, credit=credit)
        assert found.fresh + found.retry == min(places, fresh_due + retry_due)
        assert found.fresh <= fresh_due
        assert found.retry <= retry_due


@on_the_engine
async def test_a_lane_that_is_alone_takes_all_and_earns_no_credit(engine: Engine) -> None:
    """Or a long time with retries alone would be paid back by a long time with none, and the other way round."""
    assert await shared_between_lanes(engine, 10, 50, 0, credit=80) == Shares(80, 10, 0)
    assert await shared_between_lanes(engine, 10, 0, 50, credit=40) == Shares(40, 0, 10)
    assert (await shared_between_lanes(engine, 10, 2, 50))[1:] == (2, 8)

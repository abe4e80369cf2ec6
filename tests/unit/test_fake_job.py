"""A job at a fake provider, by its clock."""

from typing import Any

from windlass.services.fake_providers.behaviour import Behaviour
from windlass.services.fake_providers.job import Job


def a_job(**facts: Any) -> Job:
    usual = {"kind": "image", "prompt": "a cat", "request": {}, "behaviour": Behaviour({}), "at": 100.0}
    end = {"ends_at": 102.0, "outcome": "complete", "ended": None, "callback_url": None, "is_deleted": False}
    return Job("leonardo", "a-job", **{**usual, **end, **facts})


def test_it_runs_until_its_end_and_is_then_what_it_was_to_be() -> None:
    assert a_job().state(101.9) == "running"
    assert a_job().state(102) == "complete"
    assert a_job(outcome="failed").state(102) == "failed"
    assert a_job(ends_at=None).state(10_000) == "running"


def test_one_that_was_cancelled_stays_so() -> None:
    assert a_job(ended="cancelled").state(101) == a_job(ended="cancelled").state(103) == "cancelled"


def test_its_percentage_grows_and_is_never_a_hundred_while_it_runs() -> None:
    for job in (a_job(), a_job(ends_at=None)):
        percentages = [job.percent(100 + tenths / 10) for tenths in range(20)]
        assert percentages == sorted(percentages)
        assert percentages[0] == 0
        assert 50 < percentages[-1] < 100

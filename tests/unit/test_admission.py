"""How many tasks of each lane may start: never too many, never too few, and shared as promised."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.engine.admission import Admission, admit
from windlass.shared.admission import ProviderView, WakeUp, free_places, wake_ups
from windlass.shared.toml_tables import LaneSettings

by_the_hundred = settings(max_examples=200, derandomize=True, deadline=None)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUIET = ProviderView(
    "somebody", lane_credit=0, limit=None, held=0, capacity=8, idle_places=8, fresh_due=0, retry_due=0, at=NOW
)
PAST, FUTURE = NOW - timedelta(seconds=1), NOW + timedelta(seconds=1)

open_views = st.builds(
    ProviderView,
    name=st.just("somebody"),
    lane_credit=st.integers(0, 99),
    limit=st.none() | st.integers(0, 60),
    held=st.integers(0, 40),
    capacity=st.integers(0, 40),
    idle_places=st.integers(0, 40),
    fresh_due=st.integers(0, 80),
    retry_due=st.integers(0, 80) | st.sampled_from([999, 1000, 5000, 5001]),
    at=st.just(NOW),
)
times = st.sampled_from([None, PAST, NOW, FUTURE])
views = st.builds(
    lambda view, broker, paused, paused_until, breaker_until, trial_running, rate_left: replace(
        view,
        broker=broker,
        paused=paused,
        paused_until=paused_until,
        breaker_state="closed" if breaker_until is None else "open",
        breaker_until=breaker_until,
        trial_running=trial_running,
        rate=None if rate_left is None else {"limit": 30, "per_seconds": 60},
        rate_left=rate_left,
        rate_free_at=None if rate_left is None else FUTURE,
    ),
    open_views,
    broker=st.sampled_from(["connected"] * 4 + ["blocked", "away"]),
    paused=st.sampled_from([False, False, True]),
    paused_until=times,
    breaker_until=times,
    trial_running=st.booleans(),
    rate_left=st.none() | st.integers(0, 30),
)
"""Under any conditions; `open_views` are those with nothing but a limit in the way."""


def view_of(**fields: object) -> ProviderView:
    return replace(QUIET, **fields)  # type: ignore[arg-type]


@given(views)
@by_the_hundred
def test_never_more_start_than_the_limit_has_room_for(view: ProviderView) -> None:
    admission = admit(view)
    if view.limit is not None:
        room = max(0, view.limit - view.held)
        assert admission.fresh + admission.retry <= room


@given(views)
@by_the_hundred
def test_never_more_start_than_the_rate_has_room_for(view: ProviderView) -> None:
    admission = admit(view)
    if view.rate_left is not None:
        assert admission.fresh + admission.retry <= view.rate_left


@given(views)
@by_the_hundred
def test_never_more_start_than_are_due(view: ProviderView) -> None:
    admission = admit(view)
    assert 0 <= admission.fresh <= view.fresh_due
    assert 0 <= admission.retry <= view.retry_due


@given(views)
@by_the_hundred
def test_no_place_stays_empty_while_anything_is_due(view: ProviderView) -> None:
    admission = admit(view)
    assert admission.fresh + admission.retry == min(free_places(view), view.fresh_due + view.retry_due)


@given(views)
@by_the_hundred
def test_the_credit_is_always_less_than_one_pick(view: ProviderView) -> None:
    assert 0 <= admit(view).credit < 100


@given(open_views, st.integers(1, 20))
@by_the_hundred
def test_one_place_at_a_time_gives_what_all_at_once_gives(view: ProviderView, places: int) -> None:
    """While both lanes have work, that is; the share is the one of the first look."""
    view = replace(view, held=0, capacity=8, fresh_due=40, retry_due=40)
    at_once = admit(replace(view, limit=min(places, 16)))
    credit, fresh, retry = view.lane_credit, 0, 0
    for _ in range(min(places, 16)):
        one = admit(replace(view, limit=1, lane_credit=credit))
        credit, fresh, retry = one.credit, fresh + one.fresh, retry + one.retry
    assert Admission(fresh, retry, credit) == at_once


@pytest.mark.parametrize(
    ("waiting_retries", "fresh", "retry"),
    [(999, 70, 30), (1000, 80, 20), (5000, 80, 20), (5001, 90, 10)],
)
def test_over_a_hundred_single_picks_the_lanes_get_exactly_their_shares(
    waiting_retries: int, fresh: int, retry: int
) -> None:
    started, credit = {"fresh": 0, "retry": 0}, 0
    for _ in range(100):
        share = LaneSettings().retry_share(waiting_retries)
        one = admit(view_of(limit=1, fresh_due=500, retry_due=500, retry_share=share, lane_credit=credit))
        assert one.fresh + one.retry == 1
        credit = one.credit
        started["fresh"] += one.fresh
        started["retry"] += one.retry
    assert started == {"fresh": fresh, "retry": retry}


@pytest.mark.parametrize("credit", range(0, 100, 10))
def test_the_shares_hold_from_any_credit_on(credit: int) -> None:
    retries = 0
    for _ in range(100):
        one = admit(view_of(limit=1, fresh_due=500, retry_due=500, lane_credit=credit))
        credit, retries = one.credit, retries + one.retry
    assert retries == 30


def test_within_any_ten_picks_the_retry_lane_gets_three() -> None:
    picks, credit = [], 0
    for _ in range(100):
        one = admit(view_of(limit=1, fresh_due=500, retry_due=500, lane_credit=credit))
        credit = one.credit
        picks.append(one.retry)
    assert all(sum(picks[at : at + 10]) == 3 for at in range(90)), "spread out, not in lumps"


def test_no_limit_starts_all_that_is_due() -> None:
    assert admit(view_of(limit=None, capacity=20, fresh_due=1000)) == Admission(fresh=1000, retry=0, credit=0)


def test_a_limit_of_zero_starts_nothing() -> None:
    assert admit(view_of(limit=0, fresh_due=10, retry_due=10)) == Admission(fresh=0, retry=0, credit=0)


def test_a_limit_that_was_lowered_below_what_runs_starts_nothing() -> None:
    assert admit(view_of(limit=2, held=5, fresh_due=10)).fresh == 0


def test_a_rate_that_is_used_up_keeps_nobody_from_going_on_with_an_open_job() -> None:
    used_up = view_of(rate_left=0, fresh_due=10, resumes_due=3)
    assert admit(used_up) == Admission(fresh=0, retry=0, credit=0, resumes=3)


def test_an_empty_retry_lane_gives_its_share_away() -> None:
    assert admit(view_of(limit=10, fresh_due=50, retry_due=0, lane_credit=80)) == Admission(10, 0, 80)


def test_an_empty_fresh_lane_gives_its_share_away() -> None:
    assert admit(view_of(limit=10, fresh_due=0, retry_due=50)) == Admission(0, 10, 0)


def test_a_lane_that_runs_out_midway_leaves_the_rest_to_the_other() -> None:
    admission = admit(view_of(limit=10, fresh_due=2, retry_due=50))
    assert (admission.fresh, admission.retry) == (2, 8)


def test_a_lane_that_was_alone_has_earned_no_credit_meanwhile() -> None:
    """Or a long time with retries alone would be paid back by a long time with none, and the other way round."""
    alone = admit(view_of(limit=10, fresh_due=0, retry_due=500, lane_credit=40))
    assert alone.credit == 40


@given(views)
@by_the_hundred
def test_nothing_starts_while_paused_or_open(view: ProviderView) -> None:
    if view.paused or FUTURE in {view.paused_until, view.breaker_until}:
        assert admit(view) == Admission(0, 0, view.lane_credit)


@given(views)
@by_the_hundred
def test_after_a_pause_or_an_open_breaker_at_most_one_goes_first(view: ProviderView) -> None:
    if view.paused_until or view.breaker_until:
        admission = admit(view)
        room = 0 if view.trial_running else 1
        assert admission.fresh + admission.retry <= room
        assert admission.trial == (admission.fresh + admission.retry == 1)
    else:
        assert not admit(view).trial


@pytest.mark.parametrize("resting", [{"paused_until": PAST}, {"breaker_state": "half-open", "breaker_until": PAST}])
def test_the_one_that_goes_first_has_never_failed_if_there_is_such_a_one(resting: dict[str, object]) -> None:
    """Whoever is told 429 every time must not be the one that decides about the others."""
    both = view_of(fresh_due=1, retry_due=9, lane_credit=99, **resting)
    assert admit(both) == Admission(1, 0, credit=99, trial=True)
    assert admit(replace(both, fresh_due=0)) == Admission(0, 1, credit=99, trial=True)
    assert admit(replace(both, limit=1, held=1)) == Admission(0, 0, credit=99)


def test_a_breaker_that_an_operator_opened_has_no_end() -> None:
    assert admit(view_of(fresh_due=5, breaker_state="open", breaker_until=None)) == Admission(0, 0, 0)


@given(views)
@by_the_hundred
def test_nothing_starts_while_nobody_can_be_rung_for(view: ProviderView) -> None:
    for broker in ("blocked", "away"):
        assert admit(replace(view, broker=broker, resumes_due=3)).nobody


def woken_by(view: ProviderView, idle: int = 2) -> list[WakeUp]:
    """With one queue, in which all of it is, and so many idle workers."""
    due = view.fresh_due + view.retry_due
    one: Any = {
        "queues": ["one"], "due_by_queue": [due], "resumes_by_queue": [view.resumes_due], "idle_workers": [idle],
    }  # fmt: skip
    return wake_ups(replace(view, **one))


def test_each_idle_worker_is_woken_for_its_part_of_what_may_start() -> None:
    assert woken_by(view_of(fresh_due=200)) == [WakeUp("one", 2, 100)]
    assert woken_by(view_of(fresh_due=5, limit=3)) == [WakeUp("one", 2, 2)]
    assert woken_by(view_of(fresh_due=1), idle=5) == [WakeUp("one", 1, 1)]
    assert woken_by(view_of(fresh_due=0)) == []


def test_a_task_that_holds_a_slot_wakes_a_worker_though_no_slot_is_free() -> None:
    assert woken_by(view_of(limit=1, held=1, resumes_due=3)) == [WakeUp("one", 2, 2)]


def test_one_doorbell_is_out_while_tasks_are_due_that_may_not_start() -> None:
    assert woken_by(view_of(limit=1, held=1, fresh_due=500)) == [WakeUp("one", 1, 1)]
    assert woken_by(view_of(fresh_due=500), idle=0) == [WakeUp("one", 1, 500)], "a busy worker remembers it"


@given(views)
@by_the_hundred
def test_nobody_is_woken_while_barred_and_one_in_all_on_trial(view: ProviderView) -> None:
    woken = woken_by(view)
    if not view.fresh_due + view.retry_due:
        assert woken == []
    if view.broker != "connected" or view.paused or FUTURE in {view.paused_until, view.breaker_until}:
        assert woken == []
    elif view.paused_until or view.breaker_until:
        assert sum(each.starts * each.doorbells for each in woken) <= (not view.trial_running)

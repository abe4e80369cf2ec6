"""Why a task is not running: every reason, and never another than the dispatcher would give."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.engine.admission import admit
from tests.unit.test_admission import FUTURE, NOW, PAST, by_the_hundred, view_of, views
from windlass.shared.admission import ProviderView
from windlass.shared.explanation import TaskView, explain
from windlass.shared.states import Lane, State

WAITING = TaskView(State.QUEUED, Lane.FRESH, available_at=PAST)
LATER = FUTURE + timedelta(seconds=1)

due_tasks = st.builds(
    TaskView,
    status=st.sampled_from([State.QUEUED, State.RETRYING]),
    lane=st.sampled_from(list(Lane)),
    available_at=st.sampled_from([PAST, NOW]),
    ahead=st.integers(0, 30),
)


def due_of(view: ProviderView, task: TaskView) -> int:
    return view.fresh_due if task.lane is Lane.FRESH else view.retry_due


@given(views, due_tasks)
@by_the_hundred
def test_it_is_about_to_start_exactly_if_the_dispatcher_would_ring_for_it(view: ProviderView, task: TaskView) -> None:
    task = replace(task, ahead=min(task.ahead, max(0, due_of(view, task) - 1)))
    if due_of(view, task) == 0:
        return
    admission = admit(view)
    admitted = admission.fresh if task.lane is Lane.FRESH else admission.retry
    view = replace(view, capacity=max(view.capacity, view.idle_places), idle_places=10_000 * (view.idle_places > 0))
    says_so = explain(view, task).reason == "about-to-start"
    assert says_so == (admitted > task.ahead and view.idle_places > 0)


@given(views, due_tasks)
@by_the_hundred
def test_a_bar_is_named_by_its_own_reason(view: ProviderView, task: TaskView) -> None:
    reason = explain(view, task).reason
    if view.broker != "connected":
        assert reason == f"broker-{view.broker}"
    elif view.paused:
        assert reason == "provider-paused"
    elif view.paused_until == FUTURE:
        assert reason == "rate-limited-until"
    elif view.breaker_until == FUTURE:
        assert reason == "breaker-open"
    if view.broker == "connected" and not (view.paused or view.paused_until or view.breaker_until):
        others = {"provider-limit", "no-worker", "behind-others", "about-to-start"}
        assert reason in ({"rate-limited-until"} if view.rate_left == 0 else others)


@pytest.mark.parametrize(
    ("view", "task", "reason", "details"),
    [
        (
            {},
            {"status": State.RUNNING, "worker_id": "w", "started_at": NOW},
            "running",
            {"worker_id": "w", "since": NOW},
        ),
        ({}, {"status": State.DEAD, "completed_at": NOW}, "finished", {"status": "dead", "completed_at": NOW}),
        ({}, {"expires_at": PAST}, "finished", {"status": "queued", "expires_at": PAST}),
        (
            {},
            {"status": State.BLOCKED, "unmet": [{"task_id": "a"}]},
            "waiting-for-dependencies",
            {"unmet": [{"task_id": "a"}]},
        ),
        ({}, {"available_at": LATER}, "waiting-for-time", {"until": LATER}),
        (
            {"paused_until": FUTURE},
            {"status": State.RETRYING, "available_at": LATER},
            "waiting-for-time",
            {"until": LATER, "retry_at": LATER},
        ),
        (
            {"paused_until": FUTURE},
            {"status": State.RETRYING, "available_at": FUTURE},
            "rate-limited-until",
            {"until": FUTURE},
        ),
        ({"broker": "away"}, {}, "broker-away", {}),
        ({"broker": "away", "paused": True}, {}, "broker-away", {}),
        ({"broker": "away"}, {"available_at": LATER}, "waiting-for-time", {"until": LATER}),
        ({"broker": "blocked"}, {}, "broker-blocked", {}),
        ({"paused": True}, {}, "provider-paused", {}),
        ({"breaker_state": "open", "breaker_until": FUTURE}, {}, "breaker-open", {"until": FUTURE}),
        ({"breaker_state": "open", "breaker_until": None}, {}, "breaker-open", {"until": None}),
        (
            {"breaker_state": "half-open", "breaker_until": PAST, "trial_running": True, "held": 1},
            {},
            "breaker-open",
            {"until": PAST, "trial_running": True},
        ),
        (
            {"paused_until": PAST, "fresh_due": 5},
            {"ahead": 1},
            "rate-limited-until",
            {"until": PAST, "trial_running": False},
        ),
        ({"limit": 2, "held": 2}, {}, "provider-limit", {"limit": 2, "held": 2}),
        ({"limit": 0}, {}, "provider-limit", {"limit": 0, "held": 0}),
        ({"capacity": 0}, {}, "no-worker", {}),
        ({"limit": 1, "fresh_due": 2}, {"ahead": 1}, "behind-others", {"position": 2, "exact": True}),
        (
            {"limit": 1, "fresh_due": 2000},
            {"ahead": 1000, "all_counted": False},
            "behind-others",
            {"position": 1001, "exact": False},
        ),
        ({"held": 8, "idle_places": 0}, {"ahead": 3}, "behind-others", {"position": 4, "exact": True}),
        ({"held": 8, "idle_places": 0}, {}, "behind-others", {"position": 1, "exact": True}),
        ({"held": 8, "idle_places": 1}, {}, "about-to-start", {}),
        ({"paused_until": PAST}, {}, "about-to-start", {}),
        (
            {"paused": True},
            {"held": ["key", "workflow"], "held_at": PAST, "expires_at": PAST},
            "workflow-escalated",
            {"held": ["key", "workflow"], "since": PAST},
        ),
        ({}, {"held": ["key"], "available_at": LATER}, "key-limit", {"held": ["key"], "since": None}),
        ({}, {"held": ["endpoint"]}, "waiting-for-time", {"held": ["endpoint"], "since": None}),
        ({}, {"held": ["a newer one's"]}, "waiting-for-time", {"held": ["a newer one's"], "since": None}),
    ],
)
def test_every_reason(view: dict[str, Any], task: dict[str, Any], reason: str, details: dict[str, Any]) -> None:
    explanation = explain(view_of(**{"fresh_due": 1, **view}), replace(WAITING, **task))
    assert (explanation.reason, explanation.details) == (reason, details)
    assert explanation.message


def test_the_position_counts_the_other_lane_s_picks_too() -> None:
    """Three of ten go to the retries: the seventh fresh one has two or three of them before it."""
    busy = view_of(limit=1, held=0, fresh_due=100, retry_due=100)
    position = explain(busy, replace(WAITING, ahead=6)).details["position"]
    assert position == 1 + 6 + 2

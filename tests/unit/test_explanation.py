"""Why a task is not running: every reason, and never another than the dispatcher would give."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.test_admission import NOW, view_of
from windlass.shared.explanation import TaskView, explain
from windlass.shared.reasons import Reason
from windlass.shared.states import Lane, State

PAST, FUTURE = NOW - timedelta(seconds=1), NOW + timedelta(seconds=1)
WAITING = TaskView(State.QUEUED, Lane.FRESH, available_at=PAST)
LATER = FUTURE + timedelta(seconds=1)


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
            {"paused_until": FUTURE, "bar": Reason.RATE_LIMITED_UNTIL},
            {"status": State.RETRYING, "available_at": LATER},
            "waiting-for-time",
            {"until": LATER, "retry_at": LATER},
        ),
        (
            {"paused_until": FUTURE, "bar": Reason.RATE_LIMITED_UNTIL},
            {"status": State.RETRYING, "available_at": FUTURE},
            "rate-limited-until",
            {"until": FUTURE},
        ),
        ({"broker": "away"}, {}, "broker-away", {}),
        ({"broker": "away", "bar": Reason.PROVIDER_PAUSED}, {}, "broker-away", {}),
        ({"broker": "away"}, {"available_at": LATER}, "waiting-for-time", {"until": LATER}),
        ({"broker": "blocked"}, {}, "broker-blocked", {}),
        ({"bar": Reason.PROVIDER_PAUSED}, {}, "provider-paused", {}),
        ({"bar": Reason.BREAKER_OPEN, "breaker_until": FUTURE}, {}, "breaker-open", {"until": FUTURE}),
        ({"bar": Reason.BREAKER_OPEN, "breaker_until": None}, {}, "breaker-open", {"until": None}),
        (
            {"on_trial": True, "breaker_until": PAST, "trial_running": True, "held": 1},
            {},
            "breaker-open",
            {"until": PAST, "trial_running": True},
        ),
        (
            {"on_trial": True, "paused_until": PAST, "fresh_due": 5},
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
        ({"on_trial": True, "paused_until": PAST}, {}, "about-to-start", {}),
        (
            {"bar": Reason.PROVIDER_PAUSED},
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
    explanation = explain(view_of(**{"fresh_due": 1, "fresh_starts": 1, **view}), replace(WAITING, **task))
    assert (explanation.reason, explanation.details) == (reason, details)
    assert explanation.message


def test_the_position_counts_the_other_lane_s_picks_too() -> None:
    """Three of ten go to the retries: the seventh fresh one has two or three of them before it."""
    busy = view_of(limit=1, held=0, fresh_due=100, retry_due=100, fresh_starts=1)
    position = explain(busy, replace(WAITING, ahead=6)).details["position"]
    assert position == 1 + 6 + 2

"""Which workers are woken for what a provider may start."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from windlass.shared.admission import ProviderView, WakeUp, wake_ups
from windlass.shared.reasons import Reason

NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUIET = ProviderView("somebody", limit=None, held=0, capacity=8, idle_places=8, fresh_due=0, retry_due=0, at=NOW)


def view_of(**fields: object) -> ProviderView:
    return replace(QUIET, **fields)  # type: ignore[arg-type]


def woken_by(view: ProviderView, idle: int = 2) -> list[WakeUp]:
    """With one queue, in which all of it is, and so many idle workers."""
    due = view.fresh_due + view.retry_due
    one: Any = {
        "queues": ["one"], "due_by_queue": [due], "resumes_by_queue": [view.resumes_due], "idle_workers": [idle],
    }  # fmt: skip
    return wake_ups(replace(view, **one))


def test_each_idle_worker_is_woken_for_its_part_of_what_may_start() -> None:
    assert woken_by(view_of(fresh_due=200, fresh_starts=200)) == [WakeUp("one", 2, 100)]
    assert woken_by(view_of(fresh_due=5, fresh_starts=2, retry_starts=1)) == [WakeUp("one", 2, 2)]
    assert woken_by(view_of(fresh_due=1, fresh_starts=1), idle=5) == [WakeUp("one", 1, 1)]
    assert woken_by(view_of()) == []


def test_a_task_that_holds_a_slot_wakes_a_worker_though_no_slot_is_free() -> None:
    assert woken_by(view_of(resumes_due=3, resumes=3)) == [WakeUp("one", 2, 2)]


def test_one_doorbell_is_out_while_tasks_are_due_that_may_not_start() -> None:
    assert woken_by(view_of(fresh_due=500)) == [WakeUp("one", 1, 1, is_for_later=True)]
    assert woken_by(view_of(fresh_due=500, fresh_starts=500), idle=0) == [WakeUp("one", 1, 500)], "for a busy worker"


@pytest.mark.parametrize(
    "barred",
    [
        {"broker": "away"},
        {"broker": "blocked"},
        {"bar": Reason.BREAKER_OPEN},
        {"on_trial": True, "trial_running": True},
    ],
    ids=str,
)
def test_nobody_is_woken_while_barred_or_while_somebody_tries(barred: dict[str, object]) -> None:
    assert woken_by(view_of(fresh_due=5, resumes_due=5, **barred)) == []


def test_on_trial_one_in_all_is_woken() -> None:
    assert woken_by(view_of(fresh_due=5, resumes_due=3, resumes=1, on_trial=True)) == [WakeUp("one", 1, 1)]

"""The rules of schedules: what becomes of one due time, and when failures pause a schedule."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from windlass.shared.features.schedules.rules import (
    FAILED_ENDS,
    GOOD_ENDS,
    failures_after,
    is_settled,
    kind_of,
    pauses,
    refused,
    verdict,
)
from windlass.shared.schedules.words import Cause, Kind, Outcome, Overlap

causes, flags = st.sampled_from(Cause), st.booleans()
ENDS = (*FAILED_ENDS, *GOOD_ENDS, "cancelled", "stopped")


SITUATIONS = st.fixed_dictionaries(
    {
        "overlap": st.sampled_from(Overlap),
        "cause": causes,
        **dict.fromkeys(("is_paused", "has_key", "has_waiting", "has_live"), flags),
    }
)


@given(SITUATIONS)
def test_a_due_time_starts_only_if_nothing_forbids_it(situation: dict[str, Any]) -> None:
    found = verdict(**situation)
    names = ("overlap", "cause", "is_paused", "has_key", "has_waiting", "has_live")
    overlap, cause, is_paused, has_key, has_waiting, has_live = (situation[name] for name in names)
    by_time = cause == Cause.TIME
    asks_for_all = cause == Cause.BACKFILL or overlap == Overlap.ALLOW
    is_free = asks_for_all or not (has_waiting or has_live)
    assert (found.outcome == Outcome.STARTED) == (has_key and is_free and not (is_paused and by_time))
    assert (found.reason is None) == (found.outcome == Outcome.STARTED), "everything else has its reason"
    assert (found.outcome == Outcome.MISSED) == (is_paused and by_time)
    if found.outcome == Outcome.WAITING:
        assert overlap in {Overlap.QUEUE_ONE, Overlap.CANCEL_PREVIOUS}
        assert found.cancels_previous or not has_waiting, "no more than one waits"
    assert not found.cancels_previous or (overlap == Overlap.CANCEL_PREVIOUS and found.outcome == Outcome.WAITING)


@given(st.sampled_from(Outcome), causes, flags)
def test_what_was_started_is_never_started_again(outcome: Outcome, cause: Cause, is_summary: bool) -> None:
    settled = is_settled(outcome, cause, is_summary=is_summary)
    if outcome in {Outcome.STARTED, Outcome.WAITING} or is_summary or cause != Cause.BACKFILL:
        assert settled
    else:
        assert not settled


@given(st.lists(st.sampled_from(ENDS)), st.integers(1, 5))
def test_failures_are_counted_in_a_row(ends: list[str], limit: int) -> None:
    failures = 0
    for end in ends:
        failures = failures_after(failures, end)
    counted = [end for end in ends if end in FAILED_ENDS + GOOD_ENDS][::-1]
    in_a_row = next((place for place, end in enumerate(counted) if end in GOOD_ENDS), len(counted))
    assert failures == in_a_row
    assert pauses(failures, limit) == (in_a_row >= limit)
    assert not pauses(failures, None)


def test_a_project_with_nothing_to_do_is_skipped_and_is_no_failure() -> None:
    assert refused("backlog-empty").outcome == refused("queue-already-running").outcome == Outcome.SKIPPED
    assert refused("project-archived").outcome == Outcome.REFUSED


def test_a_start_names_its_own_kind() -> None:
    assert kind_of({"actor": "probe", "task_id": "1", "project_id": "a label"}) == Kind.TASK
    assert kind_of({"workflow": {}, "nodes": [], "submissions": []}) == Kind.WORKFLOW
    assert kind_of({"project_id": "1", "mode": "loop"}) == Kind.PROJECT

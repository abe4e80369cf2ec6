"""A workflow's status is a pure function of its counts, the same in Python as in Postgres."""

import itertools
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from windlass.shared.workflow_states import CHANGES, Counts, WorkflowStatus, status_of

few = st.integers(0, 5)
COUNTS = st.builds(
    Counts,
    live=few,
    completed=few,
    dead=few,
    cancelled=few,
    failures=few,
    failure_threshold=st.none() | st.integers(1, 5),
    cancel_requested=st.booleans(),
)


@given(COUNTS)
def test_what_each_status_means(counts: Counts) -> None:
    status = status_of(counts)
    threshold = counts.failure_threshold
    too_many = threshold is not None and counts.failures >= threshold
    assert (status is WorkflowStatus.ESCALATED) == (too_many and not counts.cancel_requested)
    if status is WorkflowStatus.RUNNING:
        assert counts.live
    if status in {WorkflowStatus.COMPLETED, WorkflowStatus.FAILED, WorkflowStatus.CANCELLED}:
        assert not counts.live
    if status is WorkflowStatus.COMPLETED:
        assert (counts.dead, counts.cancelled, counts.cancel_requested) == (0, 0, False)
    if status is WorkflowStatus.FAILED:
        assert counts.dead
        assert not counts.cancel_requested


@given(COUNTS)
def test_a_workflow_that_was_given_up_is_never_escalated_or_failed(counts: Counts) -> None:
    if counts.cancel_requested:
        assert status_of(counts) in {WorkflowStatus.RUNNING, WorkflowStatus.CANCELLED}


def test_every_status_can_be_reached_and_left_but_for_the_ends() -> None:
    assert {target for change in CHANGES for target in change.targets} == set(WorkflowStatus)
    assert {source for change in CHANGES for source in change.sources} == set(WorkflowStatus)


def all_small_counts() -> Iterator[Counts]:
    for live, dead, cancelled, failures in itertools.product(range(3), repeat=4):
        for threshold, requested in itertools.product((None, 1, 2), (False, True)):
            yield Counts(
                live=live, dead=dead, cancelled=cancelled, failures=failures, failure_threshold=threshold,
                cancel_requested=requested,
            )  # fmt: skip

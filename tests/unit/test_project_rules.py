"""What follows the end of a run, and where an item belongs: rules that need no database."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.shared.features.projects import rules
from windlass.shared.project_states import Mode, OnFailure, QueueState, RunState, StopReason
from windlass.shared.states import LIVE, TERMINAL

ENDS = st.sampled_from([RunState.COMPLETED, RunState.DEAD, RunState.CANCELLED, RunState.LOST])
FACTS = {
    "state": st.sampled_from([QueueState.RUNNING, QueueState.STOPPING]),
    "is_forced": st.booleans(),
    "mode": st.sampled_from(Mode),
    "on_failure": st.sampled_from(OnFailure),
    "has_next": st.booleans(),
}
PLACES = st.decimals(min_value=-(10**9), max_value=10**9, allow_nan=False, allow_infinity=False, places=6)


@given(ENDS, st.fixed_dictionaries(FACTS))
def test_the_next_run_starts_only_in_a_loop_that_runs_and_was_not_asked_to_stop(
    end: RunState, facts: dict[str, object]
) -> None:
    reason = rules.stop_reason(end, **facts)  # type: ignore[arg-type]
    may_start = (
        facts["state"] == QueueState.RUNNING
        and not facts["is_forced"]
        and facts["mode"] == Mode.LOOP
        and facts["has_next"]
        and (end == RunState.COMPLETED or (end == RunState.DEAD and facts["on_failure"] == OnFailure.CONTINUE))
    )
    assert (reason is None) == may_start


@given(ENDS, st.fixed_dictionaries(FACTS))
def test_a_stop_request_is_the_reason_whatever_the_end_was(end: RunState, facts: dict[str, object]) -> None:
    reason = rules.stop_reason(end, **facts)  # type: ignore[arg-type]
    if facts["is_forced"]:
        assert reason == StopReason.FORCED
    elif facts["state"] == QueueState.STOPPING or end == RunState.CANCELLED:
        assert reason == StopReason.STOPPED


@given(st.sampled_from([*LIVE, *TERMINAL]), st.integers(1, 5), st.integers(1, 5))
def test_a_run_is_one_life_of_its_task(status: str, life: int, task_life: int) -> None:
    end = rules.end_of_run(life=life, task_status=status, task_life=task_life)
    if life != task_life:
        assert end == RunState.LOST
    else:
        assert end == (status if status in TERMINAL else None)


def test_a_run_whose_task_does_not_exist_is_lost() -> None:
    assert rules.end_of_run(life=1, task_status=None, task_life=None) == RunState.LOST


@given(PLACES, PLACES)
def test_there_is_always_a_place_between_two_others(one: Decimal, other: Decimal) -> None:
    low, high = sorted((one, other))
    if low < high:
        assert low < rules.place_between(low, high) < high


def test_a_place_between_is_as_short_as_it_can_be() -> None:
    assert rules.place_between(Decimal(0), Decimal(1024)) == 512
    assert str(rules.place_between(Decimal("1.0000001"), Decimal("1.0000002"))) == "1.00000015"
    assert str(rules.place_between(Decimal("-1.5"), Decimal("2.25"))) == "0"


def test_positions_are_reassigned_once_they_have_grown_long() -> None:
    low, high, moves = Decimal(0), Decimal(1024), 0
    while not rules.needs_new_places(high):
        high, moves = rules.place_between(low, high), moves + 1
        assert moves < 10_000
    assert moves > 400


@given(st.none() | PLACES, PLACES, st.booleans())
def test_an_item_goes_to_the_side_that_was_asked_for(far: Decimal | None, near: Decimal, is_before: bool) -> None:
    if far is not None and (far >= near if is_before else far <= near):
        return
    place = rules.place_beside(near, far, is_before=is_before)
    assert place < near if is_before else place > near
    assert far is None or (far < place if is_before else place < far)


@pytest.mark.parametrize(
    ("facts", "refusal"),
    [
        ({"state": "idle", "is_archived": False}, None),
        ({"state": "idle", "is_archived": True}, "project-archived"),
        ({"state": "running", "is_archived": False}, "queue-already-running"),
        ({"state": "stopping", "is_archived": False}, "queue-already-running"),
    ],
)
def test_only_an_idle_project_starts(facts: dict[str, object], refusal: str | None) -> None:
    assert rules.refusal_to_start(**facts) == refusal  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("event", "by", "facts", "attempt", "proof"),
    [
        ("complete", None, (False, True), 1, "returned"),
        ("interrupt", None, (True, True), 1, "keeper"),
        ("stall", "guardian", (True, False), 1, "guardian"),
        ("stall", "successor", (False, False), 1, "successor"),
        ("stall", None, (False, False), 1, "lease"),
        ("complete", None, (False, True), 0, None),
        (None, None, (False, False), 1, None),
    ],
)
def test_a_receipt_names_how_the_end_is_known(
    event: str | None, by: str | None, facts: tuple[bool, bool], attempt: int, proof: str | None
) -> None:
    keeper, duration = facts
    found = rules.proof_of_end(event, by=by, has_keeper=keeper, has_duration=duration, attempt=attempt)
    assert found == proof

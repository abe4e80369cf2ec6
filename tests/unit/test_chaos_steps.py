"""The judge of steps says no where a finished one was run again, and yes to everything that is allowed."""

import random

import pytest

from tests.chaos.judge.violation import STEP_RUN_AGAIN
from tests.chaos.record import Fault, Record
from tests.chaos.steps.judge import judge_steps
from tests.chaos.steps.rows import Entry, StepRow, StepRows
from tests.chaos.steps.wishes import SHARES, plan
from tests.support.chaos_stories import LEASE, a_task, rows_of

WALK = {"actor": "walk", "provider": "walk", "result": ["one", "two"]}
KEPT = [StepRow("a", "step 0", 1, "one", 102.0), StepRow("a", "step 1", 2, "two", 106.0)]
RUN = [Entry("a", "step 0", 1, 101.0), Entry("a", "step 1", 1, 102.5), Entry("a", "step 1", 2, 105.0)]


def wrong(record: Record | None = None, *more: Entry, kept: list[StepRow] | None = None) -> list[str]:
    rows = rows_of(a_task("a", "submit", "claim", "stall", "claim", "complete", **WALK))
    steps = StepRows(KEPT if kept is None else kept, [*RUN, *more])
    found = list(judge_steps(record or Record(), rows, steps, LEASE))
    assert {each.criterion for each in found} <= {STEP_RUN_AGAIN}
    return [each.words for each in found]


def test_a_step_that_was_under_way_when_its_attempt_died_is_run_once_more() -> None:
    assert wrong() == []


def test_a_later_attempt_that_runs_a_finished_step_is_found() -> None:
    assert "run again by attempt 2" in wrong(None, Entry("a", "step 0", 2, 104.0))[0]


def test_one_attempt_that_runs_a_step_twice_is_found() -> None:
    assert "2 times by attempt 1" in wrong(None, Entry("a", "step 0", 1, 101.5))[0]


def test_an_earlier_attempt_that_should_be_dead_is_found_unless_its_host_stood_still() -> None:
    late = Entry("a", "step 2", 1, 108.0)
    kept = [*KEPT, StepRow("a", "step 2", 2, "three", 107.0)]
    ran = Entry("a", "step 2", 2, 106.5)
    assert any("run again by attempt 1" in each for each in wrong(None, late, ran, kept=kept))
    frozen = Record(faults=[Fault(1, "freeze host", 100.0, 107.5, is_host_wide=True)])
    assert not any("run again by attempt 1" in each for each in wrong(frozen, late, ran, kept=kept))


def test_what_was_kept_for_who_has_not_run_it_is_found() -> None:
    moved = [KEPT[0], StepRow("a", "step 1", 3, "two", 106.0)]
    assert any("which has not run it" in each for each in wrong(kept=moved))


@pytest.mark.parametrize("result", ["other", None])
def test_a_result_that_is_not_what_the_steps_came_to_is_found(result: str | None) -> None:
    assert "its steps came to" in wrong(kept=[StepRow("a", "step 0", 1, result, 102.0), KEPT[1]])[0]


def test_walks_are_the_same_for_the_same_dice_and_of_every_kind() -> None:
    first, again = (plan(random.Random(3), walks=200, seconds=60) for _ in range(2))
    payloads = [[{**wish.body["payload"], "mark": ""} for wish in each] for each in (first, again)]
    assert payloads[0] == payloads[1]
    assert {wish.body["actor"] for wish in first} == set(SHARES)
    assert any(wish.is_revived for wish in first)
    assert any(wish.cancel_after is not None for wish in first)

"""What becomes of a failed attempt, row by row of the contract's table."""

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windlass.services.actors.worker.ending.retries import ending_of_failure, ending_of_interrupt, ending_of_success
from windlass.shared import errors
from windlass.shared.errors import RateLimited, ServiceUnavailable, TaskError, TimedOut
from windlass.shared.store.tasks import Claimed

by_the_hundred = settings(max_examples=200, derandomize=True, deadline=None)

FIRST_ATTEMPT = Claimed(
    task_id=UUID(int=1),
    claim_token=UUID(int=2),
    actor="probe",
    provider="probe",
    payload={},
    checkpoint=None,
    attempt=1,
    retry_count=0,
    max_retries=3,
    interrupt_count=0,
    stall_count=0,
    rate_limited_count=0,
    timeout_seconds=300,
)

SCHEDULES: dict[str, tuple[float, ...]] = {
    "ServiceUnavailable": (5, 10, 30, 60, 120, 120, 120),
    "NetworkTimeout": (2, 5, 10, 30, 60, 60, 60),
    "TimedOut": (0, 0, 0, 0),
    "WorkerLost": (0, 5, 20, 45, 45, 45),
    "SubprocessFailed": (5, 20, 45, 80, 125, 180, 245, 300, 300, 300),
}
PERMANENT = (
    "InvalidInput", "Unauthorized", "Forbidden", "NotFound", "ContentRejected", "QuotaExhausted", "SubmitUnknown",
    "OutOfMemory", "ResultTooLarge", "ResultTooDeep", "InvalidStep", "NotAwaited", "Expired",
    "DependencyFailed",
)  # fmt: skip


def error_called(name: str) -> TaskError:
    return errors.ERROR_TYPES[name](f"a {name}")


def delays(error: BaseException, failures: int) -> list[float]:
    """The delay before each retry of a task that fails in this way again and again."""
    return [
        ending_of_failure(replace(FIRST_ATTEMPT, retry_count=done, max_retries=failures), error).delay_seconds
        for done in range(failures)
    ]


def with_jitter(delay: float) -> object:
    return pytest.approx(delay * 1.05, abs=delay * 0.05 + 1e-9)


def test_the_vocabulary_is_the_one_of_the_contract() -> None:
    assert set(errors.ERROR_TYPES) == {*SCHEDULES, *PERMANENT, "RateLimited"}


@pytest.mark.parametrize(("name", "schedule"), SCHEDULES.items())
def test_each_transient_error_has_its_schedule_and_the_last_delay_repeats(
    name: str, schedule: tuple[float, ...]
) -> None:
    assert delays(error_called(name), len(schedule)) == [with_jitter(delay) for delay in schedule]


@pytest.mark.parametrize(("name", "schedule"), SCHEDULES.items())
def test_each_transient_error_costs_one_retry(name: str, schedule: tuple[float, ...]) -> None:
    ending = ending_of_failure(FIRST_ATTEMPT, error_called(name))
    assert (ending.transition, ending.retry_cost) == ("retry", 1)


@pytest.mark.parametrize("error", [ValueError("a bug"), ZeroDivisionError(), KeyError("missing"), MemoryError()])
def test_an_unknown_exception_waits_five_times_the_square_and_at_most_300_seconds(error: Exception) -> None:
    assert delays(error, 10) == [with_jitter(delay) for delay in (5, 20, 45, 80, 125, 180, 245, 300, 300, 300)]


def test_an_unknown_exception_is_told_by_its_own_name_with_its_stack_trace() -> None:
    with pytest.raises(KeyError) as raised:
        {"here": 1}["missing"]
    described = ending_of_failure(replace(FIRST_ATTEMPT, attempt=2), raised.value).error
    assert described is not None
    assert (described["type"], described["kind"], described["attempt"]) == ("KeyError", "transient", 2)
    assert "test_retries.py" in described["stack_trace"]


def test_an_exception_without_a_message_is_told_by_its_name() -> None:
    described = ending_of_failure(FIRST_ATTEMPT, ZeroDivisionError()).error
    assert described is not None
    assert described["message"] == "ZeroDivisionError"


@given(st.integers(0, 10), st.sampled_from([*SCHEDULES, "RateLimited"]))
@by_the_hundred
def test_jitter_adds_up_to_a_tenth_and_takes_nothing_away(failures: int, name: str) -> None:
    schedule = {**SCHEDULES, "RateLimited": (60, 120, 300, 600)}[name]
    planned = schedule[min(failures, len(schedule) - 1)]
    task = replace(FIRST_ATTEMPT, retry_count=failures, rate_limited_count=failures, max_retries=100)
    assert planned <= ending_of_failure(task, error_called(name)).delay_seconds <= planned * 1.1


def test_jitter_differs_from_task_to_task() -> None:
    assert len({ending_of_failure(FIRST_ATTEMPT, ServiceUnavailable("busy")).delay_seconds for _ in range(20)}) > 10


@pytest.mark.parametrize("name", PERMANENT)
def test_a_permanent_error_buries_at_once(name: str) -> None:
    ending = ending_of_failure(FIRST_ATTEMPT, error_called(name))
    assert ending.transition == "bury"
    assert ending.error is not None
    assert (ending.error["type"], ending.error["kind"], ending.error["details"]) == (name, "permanent", {})


@pytest.mark.parametrize("name", SCHEDULES)
def test_used_up_retries_bury_with_the_last_error_and_say_so(name: str) -> None:
    ending = ending_of_failure(replace(FIRST_ATTEMPT, attempt=4, retry_count=3), error_called(name))
    assert ending.transition == "bury"
    assert ending.error is not None
    assert (ending.error["type"], ending.error["kind"], ending.error["attempt"]) == (name, "transient", 4)
    assert ending.error["details"] == {"retries_exhausted": True}


def test_exhaustion_keeps_what_the_error_had_to_tell() -> None:
    error = ServiceUnavailable("busy", status_code=503)
    described = ending_of_failure(replace(FIRST_ATTEMPT, retry_count=3), error).error
    assert described is not None
    assert described["details"] == {"status_code": 503, "retries_exhausted": True}
    assert error.details == {"status_code": 503}, "the error itself is left alone"


def test_four_attempts_are_made_by_default() -> None:
    fates = [
        ending_of_failure(replace(FIRST_ATTEMPT, retry_count=done), ServiceUnavailable("busy")).transition
        for done in range(4)
    ]
    assert fates == ["retry", "retry", "retry", "bury"]


def test_a_task_without_retries_is_buried_by_its_first_failure() -> None:
    assert ending_of_failure(replace(FIRST_ATTEMPT, max_retries=0), ServiceUnavailable("busy")).transition == "bury"


def test_a_429_waits_as_long_as_it_was_told() -> None:
    ending = ending_of_failure(FIRST_ATTEMPT, RateLimited("slow down", retry_after=42))
    assert ending.delay_seconds == with_jitter(42)
    assert ending.error is not None
    assert ending.error["details"] == {"retry_after": 42}


def test_a_429_that_names_no_time_waits_longer_each_time_in_a_row() -> None:
    waits = [
        ending_of_failure(replace(FIRST_ATTEMPT, rate_limited_count=before), RateLimited("slow down")).delay_seconds
        for before in range(6)
    ]
    assert waits == [with_jitter(delay) for delay in (60, 120, 300, 600, 600, 600)]


def test_a_429_costs_nothing_until_the_twentieth_in_a_row() -> None:
    costs = [
        ending_of_failure(replace(FIRST_ATTEMPT, rate_limited_count=before), RateLimited("slow down")).retry_cost
        for before in range(25)
    ]
    assert costs == [0] * 19 + [1] * 6


def test_a_429_is_counted_as_one() -> None:
    assert ending_of_failure(FIRST_ATTEMPT, RateLimited("slow down")).rate_limited
    assert not ending_of_failure(FIRST_ATTEMPT, ServiceUnavailable("busy")).rate_limited


def test_a_429_does_not_bury_a_task_that_has_used_up_its_retries() -> None:
    used_up = replace(FIRST_ATTEMPT, retry_count=3)
    assert ending_of_failure(used_up, RateLimited("slow down")).transition == "retry"


def test_the_twentieth_429_in_a_row_buries_a_task_that_has_used_up_its_retries() -> None:
    used_up = replace(FIRST_ATTEMPT, retry_count=3, rate_limited_count=19)
    ending = ending_of_failure(used_up, RateLimited("slow down"))
    assert ending.transition == "bury"
    assert ending.error is not None
    assert ending.error["details"] == {"retries_exhausted": True}


def test_after_its_own_timeout_an_attempt_gets_half_as_much_time_again() -> None:
    assert ending_of_failure(FIRST_ATTEMPT, TimedOut("too slow")).timeout_factor == 1.5
    assert ending_of_failure(FIRST_ATTEMPT, ServiceUnavailable("busy")).timeout_factor == 1


def test_an_interrupt_is_free_until_the_tenth() -> None:
    costs = [ending_of_interrupt(replace(FIRST_ATTEMPT, interrupt_count=before)).retry_cost for before in range(13)]
    assert costs == [0] * 9 + [1] * 4


def test_an_interrupted_task_is_handed_back_without_delay() -> None:
    ending = ending_of_interrupt(FIRST_ATTEMPT)
    assert (ending.transition, ending.delay_seconds, ending.error) == ("interrupt", 0, None)


def test_who_met_a_lack_again_and_again_waits_longer_each_time() -> None:
    """A new worker mends a lack of its own at once; one of the whole machine, such as a full disk, takes its time."""
    interrupted = (replace(FIRST_ATTEMPT, interrupt_count=before) for before in range(4))
    assert [ending_of_interrupt(each, after_a_lack=True).delay_seconds for each in interrupted] == [0, 5, 20, 45]


def test_an_interrupt_that_costs_buries_a_task_that_has_no_retries_left() -> None:
    ending = ending_of_interrupt(replace(FIRST_ATTEMPT, interrupt_count=9, retry_count=3))
    assert ending.transition == "bury"
    assert ending.error is not None
    assert set(ending.error) == {"type", "kind", "message", "details", "stack_trace", "attempt"}
    assert (ending.error["type"], ending.error["details"]) == ("WorkerLost", {"retries_exhausted": True})


def test_a_free_interrupt_does_not_bury_a_task_that_has_no_retries_left() -> None:
    assert ending_of_interrupt(replace(FIRST_ATTEMPT, interrupt_count=8, retry_count=3)).transition == "interrupt"


def test_an_ending_names_the_attempt_and_the_token_that_it_ends() -> None:
    for ending in (
        ending_of_success(FIRST_ATTEMPT, {"answer": 42}),
        ending_of_failure(FIRST_ATTEMPT, ServiceUnavailable("busy")),
        ending_of_interrupt(FIRST_ATTEMPT),
    ):
        assert (ending.task_id, ending.attempt, ending.claim_token) == (UUID(int=1), 1, UUID(int=2))


def test_success_carries_its_result() -> None:
    ending = ending_of_success(FIRST_ATTEMPT, {"answer": 42})
    assert (ending.transition, ending.result) == ("complete", {"answer": 42})

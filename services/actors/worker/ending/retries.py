"""What becomes of a failed attempt: a pure function of the error and of what the task has been through."""

import random
from collections.abc import Sequence
from typing import Any

from windlass.shared.errors import DeliveryFailed, RateLimited, TaskError, TimedOut, describe
from windlass.shared.retry_delays import (
    BUILT_IN,
    BUILT_IN_CURVE,
    FIELDS,
    OTHER,
    Curve,
    RetrySettings,
    TaskSchedules,
    delay_at,
)
from windlass.shared.scrubbing import withhold
from windlass.shared.storable import storable
from windlass.shared.store.tasks import Claimed, Ending

LONGEST_HAND_BACK_SECONDS = 10.0


def delays_after(error: BaseException, schedules: Sequence[TaskSchedules]) -> tuple[float, ...] | Curve:
    """As the first of the tables has them that says anything about such errors; else those built in."""
    name = next((each.__name__ for each in type(error).__mro__ if each.__name__ in FIELDS), OTHER)
    for table in schedules:
        if (found := table.delays_of(name)) is not None:
            return found
    built_in = error.delays if isinstance(error, TaskError) else None
    return BUILT_IN_CURVE if built_in is None else built_in


def delay_after(error: BaseException, failures: int, schedules: Sequence[TaskSchedules] = ()) -> float:
    """Seconds until the next attempt: what the provider or the endpoint has said, or the schedule of such errors."""
    if isinstance(error, RateLimited | DeliveryFailed) and error.retry_after is not None:
        return error.retry_after
    return delay_at(delays_after(error, schedules), failures)


def ending_of_failure(
    task: Claimed,
    error: BaseException,
    rules: RetrySettings = BUILT_IN,
    schedules: Sequence[TaskSchedules] = (BUILT_IN,),
) -> Ending:
    """Retry or bury, what it costs, and what it says about the provider; `schedules` are the tables with delays that
    concern the task, the narrowest first."""
    described = storable(describe(error, task.attempt))
    rate_limited = isinstance(error, RateLimited)
    for_free = rate_limited and task.rate_limited_count + 1 < rules.rate_limits_cost_from
    exhausted = not for_free and task.retry_count >= task.max_retries
    gives_up = described["kind"] == "permanent" or exhausted
    if gives_up and described["kind"] == "transient":
        described["details"] = {**described["details"], "retries_exhausted": True}
    failures = task.rate_limited_count if rate_limited else task.retry_count
    jitter = 1 + random.random() * rules.jitter  # noqa: S311 - jitter is no secret
    return _ending(
        task,
        "bury" if gives_up else "retry",
        error=described,
        delay_seconds=0 if gives_up and not rate_limited else delay_after(error, failures, schedules) * jitter,
        retry_cost=0 if for_free or gives_up else 1,
        rate_limited=rate_limited,
        provider_failed=isinstance(error, TaskError) and error.is_the_providers_fault,
        hopeless_if_others_pass=rate_limited and not for_free,
        timeout_factor=rules.timeout_factor if isinstance(error, TimedOut) and not gives_up else 1,
    )


def ending_of_interrupt(task: Claimed, rules: RetrySettings = BUILT_IN, *, after_a_lack: bool = False) -> Ending:
    """Handed back because the worker stops: for free the first times, lest a task be interrupted for ever. What was
    interrupted before, and now met a lack of something, waits a while: the next worker may lack it as well."""
    costs = task.interrupt_count + 1 >= rules.interrupts_cost_from
    if costs and task.retry_count >= task.max_retries:
        error = describe(TaskError("interrupted again and again, and no retries are left"), task.attempt)
        error |= {"type": "WorkerLost", "details": {"retries_exhausted": True}, "stack_trace": None}
        return _ending(task, "bury", error=error)
    waits = after_a_lack and task.interrupt_count > 0
    delay = delay_at(rules.other or BUILT_IN_CURVE, task.interrupt_count - 1) if waits else 0
    return _ending(task, "interrupt", retry_cost=int(costs), delay_seconds=delay)


def ending_of_hand_back(task: Claimed) -> Ending:
    """For free, however often: another version of its actor lives that takes it, or another task has to go before it.
    Later and later, lest this worker claim it again and again before that one comes to it."""
    return _ending(
        task, "interrupt", delay_seconds=min(LONGEST_HAND_BACK_SECONDS, 0.25 * 2 ** min(task.interrupt_count, 10))
    )


def ending_of_success(task: Claimed, result: Any) -> Ending:
    return _ending(task, "complete", result=withhold(result))


def _ending(task: Claimed, transition: str, **fields: Any) -> Ending:
    return Ending(task.task_id, task.attempt, task.claim_token, transition, concerns=task.concerns, **fields)

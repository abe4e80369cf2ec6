"""What becomes of a failed attempt: a pure function of the error and of what the task has been through."""

import random
from typing import Any

from windlass.shared.errors import RateLimited, TaskError, TimedOut, describe
from windlass.shared.scrubbing import withhold
from windlass.shared.store.tasks import Claimed, Ending

LONGEST_DELAY_SECONDS = 300
RATE_LIMITED_FOR_FREE = 20
INTERRUPTED_FOR_FREE = 10
JITTER = 0.1
LONGER_AFTER_TIMEOUT = 1.5


def delay_after(error: BaseException, failures: int) -> float:
    """Seconds until the next attempt: the error's own schedule, its last entry repeated, or 5·n², at most 300."""
    if isinstance(error, RateLimited) and error.retry_after is not None:
        return error.retry_after
    delays = error.delays if isinstance(error, TaskError) else None
    if delays is None:
        return min(5 * (failures + 1) ** 2, LONGEST_DELAY_SECONDS)
    return delays[min(failures, len(delays) - 1)]


def ending_of_failure(task: Claimed, error: BaseException) -> Ending:
    """Retry or bury, what it costs, and what it says about the provider."""
    described = describe(error, task.attempt)
    rate_limited = isinstance(error, RateLimited)
    for_free = rate_limited and task.rate_limited_count + 1 < RATE_LIMITED_FOR_FREE
    exhausted = not for_free and task.retry_count >= task.max_retries
    gives_up = described["kind"] == "permanent" or exhausted
    if gives_up and described["kind"] == "transient":
        described["details"] = {**described["details"], "retries_exhausted": True}
    failures = task.rate_limited_count if rate_limited else task.retry_count
    jitter = 1 + random.random() * JITTER  # noqa: S311 - jitter is no secret
    return _ending(
        task,
        "bury" if gives_up else "retry",
        error=described,
        delay_seconds=0 if gives_up and not rate_limited else delay_after(error, failures) * jitter,
        retry_cost=0 if for_free or gives_up else 1,
        rate_limited=rate_limited,
        provider_failed=isinstance(error, TaskError) and error.is_the_providers_fault,
        hopeless_if_others_pass=rate_limited and not for_free,
        timeout_factor=LONGER_AFTER_TIMEOUT if isinstance(error, TimedOut) and not gives_up else 1,
    )


def ending_of_interrupt(task: Claimed, *, after_a_lack: bool = False) -> Ending:
    """Handed back because the worker stops: for free the first times, lest a task be interrupted for ever. What was
    interrupted before, and now met a lack of something, waits a while: the next worker may lack it as well."""
    costs = task.interrupt_count + 1 >= INTERRUPTED_FOR_FREE
    if costs and task.retry_count >= task.max_retries:
        error = describe(TaskError("interrupted again and again, and no retries are left"), task.attempt)
        error |= {"type": "WorkerLost", "details": {"retries_exhausted": True}, "stack_trace": None}
        return _ending(task, "bury", error=error)
    waits = after_a_lack and task.interrupt_count > 0
    delay = min(5 * task.interrupt_count**2, LONGEST_DELAY_SECONDS) if waits else 0
    return _ending(task, "interrupt", retry_cost=int(costs), delay_seconds=delay)


def ending_of_success(task: Claimed, result: Any) -> Ending:
    return _ending(task, "complete", result=withhold(result))


def _ending(task: Claimed, transition: str, **fields: Any) -> Ending:
    return Ending(task.task_id, task.attempt, task.claim_token, transition, **fields)

"""What a worker says to Prometheus: its attempts and their steps, its queues and places, its calls to providers."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from windlass.services.actors.worker.capacity import KINDS, Capacity, Kind
from windlass.shared.errors import ERROR_TYPES, NetworkTimeout, RateLimited, ServiceUnavailable, TaskError, TimedOut
from windlass.shared.metrics.actors import FOR_ANOTHER_VERSION, QUEUE_BROKEN, STEPS
from windlass.shared.metrics.declaring import Kept
from windlass.shared.metrics.providers import CALL_SECONDS_TAKEN, CALLS, COST_USD, TOKENS
from windlass.shared.metrics.seam import counted_afterwards
from windlass.shared.metrics.services import HEARTBEAT_AGE_SECONDS, WORKER_PLACES
from windlass.shared.metrics.tasks import ATTEMPT_ERRORS, ATTEMPTS_FINISHED, RUN_SECONDS
from windlass.shared.providers.base import Finished, OrderUnknown
from windlass.shared.store.tasks import Claimed, Ending

OUTCOMES: Mapping[str | None, str] = {
    "completed": "completed",
    "retrying": "retried",
    "dead": "buried",
    "cancelled": "cancelled",
    "queued": "interrupted",
    None: "lost",
}
"""By the status that its end has given the task; none when the task was no longer the worker's."""

FAILED = {"retrying": "retried", "dead": "buried"}

_finished, _run, _errors = Kept(ATTEMPTS_FINISHED), Kept(RUN_SECONDS), Kept(ATTEMPT_ERRORS)


STEP_RESULTS = ("run", "given_back")


def begin(queues: Iterable[str], broken: Iterable[str]) -> None:
    """What has not happened yet has happened 0 times, as far as somebody may be woken by the first time. What is broken
    stays so until the process is replaced."""
    for queue in queues:
        actor, _, provider = queue.partition(".")
        QUEUE_BROKEN.labels(queue).set(0)
        FOR_ANOTHER_VERSION.labels(actor).inc(0)
        for result in STEP_RESULTS:
            STEPS.labels(actor, result).inc(0)
        _errors[actor, provider, "OutOfMemory", "buried"].inc(0)
        for outcome in OUTCOMES.values():
            _finished[actor, provider, outcome].inc(0)
    for queue in broken:
        QUEUE_BROKEN.labels(queue).set(1)


@counted_afterwards
def attempt_ended(task: Claimed, ending: Ending, status: str | None, *, seconds: float) -> None:
    _finished[task.actor, task.provider, OUTCOMES[status]].inc()
    _run[task.actor, task.provider].observe(seconds)
    if ending.error is not None and status in FAILED:
        error_type = ending.error["type"] if ending.error["type"] in ERROR_TYPES else "other"
        _errors[task.actor, task.provider, error_type, FAILED[status]].inc()


def step_ended(actor: str, result: str) -> None:
    STEPS.labels(actor, result).inc()


def left_to_another_version(actor: str) -> None:
    FOR_ANOTHER_VERSION.labels(actor).inc()


def watch_places(capacity: Capacity, busy: Callable[[Kind], int], *, heartbeat_age: Callable[[], float]) -> None:
    """Looked at when somebody asks, so that nothing is noted at every task."""
    for kind in KINDS:
        WORKER_PLACES.labels(kind, "busy").set_function(partial(busy, kind))
        WORKER_PLACES.labels(kind, "idle").set_function(partial(_idle, capacity, busy, kind))
    HEARTBEAT_AGE_SECONDS.set_function(heartbeat_age)


def _idle(capacity: Capacity, busy: Callable[[Kind], int], kind: Kind) -> int:
    return max(capacity.of(kind) - busy(kind), 0)


@contextmanager
def provider_call(provider: str, operation: str) -> Iterator[None]:
    """Around one request, as the one who makes it sees it. One that was cancelled has come to nothing."""
    started = time.monotonic()
    try:
        yield
    except Exception as error:
        _call_ended(provider, operation, result_of(error), started)
        raise
    _call_ended(provider, operation, "ok", started)


def _call_ended(provider: str, operation: str, result: str, started: float) -> None:
    CALLS.labels(provider, operation, result).inc()
    CALL_SECONDS_TAKEN.labels(provider, operation).observe(time.monotonic() - started)


def result_of(error: BaseException) -> str:
    """What came of a call, by the error that tells of it."""
    cause = error.__cause__ if isinstance(error, OrderUnknown) and error.__cause__ else error
    if isinstance(cause, NetworkTimeout):
        return "timeout" if cause.details.get("sent", True) else "unreachable"
    if isinstance(cause, TimedOut):
        return "timeout"
    if isinstance(cause, RateLimited):
        return "rate_limited"
    if isinstance(cause, TaskError) and not isinstance(cause, ServiceUnavailable):
        return "refused"
    return "failed"


def paid(provider: str, finished: Finished) -> None:
    TOKENS.labels(provider, "prompt").inc(finished.prompt_tokens or 0)
    TOKENS.labels(provider, "completion").inc(finished.completion_tokens or 0)
    COST_USD.labels(provider).inc(max(finished.cost or 0, 0))

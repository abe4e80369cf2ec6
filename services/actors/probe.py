"""The probe: a synthetic task that sleeps, reports, and ends as it was told."""

import os
import signal
import time
from typing import Any

from windlass.actors import actor
from windlass.services.actors.worker.context.context import Context
from windlass.shared.actors.payloads import ProbePayload
from windlass.shared.errors import ERROR_TYPES, InvalidInput, RateLimited, TaskError


@actor
def probe(context: Context, payload: ProbePayload) -> dict[str, Any]:
    _work(context, payload)
    if payload.outcome == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if payload.outcome == "hang":
        while True:
            time.sleep(3600)
    if fails(payload, context.task.attempt):
        raise _error(payload)
    return {"echo": payload.result, "attempt": context.task.attempt, "worker_id": context.worker_id}


def fails(payload: ProbePayload, attempt: int) -> bool:
    if payload.fail_times is not None:
        return attempt <= payload.fail_times
    return payload.outcome in {"transient", "permanent"}


def _work(context: Context, payload: ProbePayload) -> None:
    pieces = payload.steps or 1
    for step in range(1, pieces + 1):
        context.sleep(payload.seconds / pieces)
        if payload.steps:
            context.progress(f"Step {step} of {payload.steps}", percent=100 * step / payload.steps)


def _error(payload: ProbePayload) -> TaskError:
    if payload.outcome == "permanent":
        return InvalidInput("the probe was told to fail for good")
    kind = ERROR_TYPES[payload.error_type]
    message = f"the probe was told to fail with {payload.error_type}"
    return RateLimited(message, retry_after=payload.retry_after) if kind is RateLimited else kind(message)

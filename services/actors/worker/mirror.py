"""StateMirror: every message is claimed before its actor runs and ended, in Postgres, before it is acked."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import dramatiq
from dramatiq.middleware import MiddlewareError, SkipMessage
from msgspec.structs import replace

from windlass.services.actors.worker.attempts import Attempts
from windlass.services.actors.worker.calls import Calls
from windlass.services.actors.worker.context import Context, Stopped
from windlass.services.actors.worker.exhaustion import lack_behind
from windlass.services.actors.worker.leases.lease_limiter import LeaseLimiter
from windlass.services.actors.worker.metrics import attempt_ended
from windlass.services.actors.worker.refusals import ForAnotherVersion
from windlass.services.actors.worker.retries import (
    ending_for_another_version,
    ending_of_failure,
    ending_of_interrupt,
    ending_of_success,
)
from windlass.services.actors.worker.writing.last_words import before_the_end
from windlass.services.actors.worker.writing.writer import Writer
from windlass.shared import tracing
from windlass.shared.errors import Thrown
from windlass.shared.process import log_context
from windlass.shared.reasons import Reason
from windlass.shared.retry_delays import schedules_of_task
from windlass.shared.settings import Settings
from windlass.shared.store.tasks import Claimed, Ending, Refused

log = logging.getLogger("actors")


class ClaimFailed(MiddlewareError):
    """The claim could not be written. Only a `MiddlewareError` keeps Dramatiq from running the actor all the same."""


@dataclass
class Running:
    """What a worker thread has under way: the slot it holds, and the attempt that holds it."""

    limiter: LeaseLimiter
    slot: AbstractContextManager[bool]
    context: Context
    span: tracing.Span
    result: Any = None
    claimed_at: float = field(default_factory=time.monotonic)


class StateMirror(dramatiq.Middleware):
    """Takes slots through `LeaseLimiter`; there is no other way to run a task."""

    def __init__(
        self,
        writer: Writer,
        attempts: Attempts,
        calls: Calls,
        worker_id: str,
        *,
        settings: Settings,
        on_suspect: Callable[[], None],
        condemn: Callable[[str], None],
    ) -> None:
        self._writer = writer
        self._attempts = attempts
        self._on_suspect = on_suspect
        self._worker_id = worker_id
        self._settings = settings
        self._condemn = condemn
        self._calls = calls
        self._thread = threading.local()
        self.closed = False

    @property
    def running(self) -> Running:
        """The attempt of the thread that asks."""
        running: Running = self._thread.running
        return running

    def before_worker_boot(self, broker: dramatiq.Broker, worker: dramatiq.Worker) -> None:  # noqa: ARG002
        """A failed attempt or claim is told once, here, with the task and what becomes of it: Dramatiq's own word about
        it, and about every message that is skipped, would be the second."""
        logging.getLogger("dramatiq.worker.WorkerThread").setLevel(logging.CRITICAL)

    def before_process_message(self, broker: dramatiq.Broker, message: Any) -> None:  # noqa: ARG002
        if self.closed:
            message.put_back = True
            raise SkipMessage("the worker stops; the message goes back to its queue")
        try:
            self._claim(message)
        except SkipMessage:
            raise
        except Exception as error:
            task_id = next(iter(message.args), None)
            with log_context.about(task_id=task_id):
                log.exception("task %s could not be claimed; who still waits is rung for again", task_id)
            raise ClaimFailed(f"task {task_id} could not be claimed") from error

    def _claim(self, message: Any) -> None:
        limiter = LeaseLimiter(self._writer, UUID(message.args[0]))
        slot = limiter.acquire(raise_on_failure=False)
        if not slot.__enter__():
            assert isinstance(limiter.answer, Refused)
            if limiter.answer.reason is Reason.MUST_RUN_ALONE:
                self._on_suspect()
            raise SkipMessage(f"not claimed: {limiter.answer.reason}")
        assert isinstance(limiter.answer, Claimed)
        context = Context(
            limiter.answer,
            self._worker_id,
            on_report=self._writer.report,
            calls=self._calls,
            store=self._writer.call,
            settings=self._settings,
            largest_output_bytes=self._settings.largest_output_bytes,
            largest_output_event_bytes=self._settings.largest_output_event_bytes,
        )
        running = Running(limiter, slot, context, self._speak_of(limiter.answer))
        self._attempts.add(context)
        self._thread.running = running
        if self.closed:
            # Granted while the worker was told to stop: those who stop all that runs may not have seen it.
            self._attempts.stop(context.task.claim_token)

    def _speak_of(self, task: Claimed) -> tracing.Span:
        """What this thread says and does from here on is about this attempt."""
        log_context.take_up(task_id=task.task_id, attempt=task.attempt, traceparent=task.traceparent)
        queue = f"{task.actor}.{task.provider}"
        return tracing.attempting(task.task_id, task.attempt, queue, self._worker_id, task.traceparent).__enter__()

    def after_process_message(
        self,
        broker: dramatiq.Broker,  # noqa: ARG002
        message: Any,
        *,
        result: None = None,  # noqa: ARG002 - an actor's result is kept in `Running`
        exception: BaseException | None = None,
    ) -> None:
        running: Running | None = getattr(self._thread, "running", None)
        if running is None:
            return
        self._thread.running = None
        self._attempts.over(running.context)
        try:
            self._end(running, exception)
        except Exception:
            log.exception("task %s: its end could not be written; its lease will run out", message.args[0])
        finally:
            self._attempts.remove(running.context)
            running.span.__exit__(None, None, None)
            log_context.lay_down()

    def _ending_of(self, running: Running, exception: BaseException | None) -> Ending:
        task = running.context.task
        if exception is None:
            return ending_of_success(task, running.result)
        if isinstance(exception, ForAnotherVersion):
            return ending_for_another_version(task)
        if isinstance(exception, Stopped):
            return ending_of_interrupt(task, self._settings.retries)
        if lack := lack_behind(exception):
            # Not what the task did, and the next one would fare no better here: a new process may.
            self._condemn(f"{lack} (task {task.task_id} met it)")
            return ending_of_interrupt(task, self._settings.retries, after_a_lack=True)
        return self._ending_of_failure(task, exception)

    def _ending_of_failure(self, task: Claimed, error: BaseException) -> Ending:
        agent = task.payload.get("subagent_type") if task.actor == "agent" else None
        own = (schedules_of_task(task.retry_delays),) if task.retry_delays else ()
        schedules = (*own, *self._settings.schedules_for(task.actor, task.provider, agent))
        return ending_of_failure(task, error, self._settings.retries, schedules)

    def _end(self, running: Running, exception: BaseException | None) -> None:
        task = running.context.task
        last_words = running.context.take_report()
        ending = self._ending_of(running, exception)
        context = running.context
        ending = replace(ending, exit_code=context.exit_code, proof=context.proof, usage=context.spent)
        running.limiter.ending = ending = before_the_end(last_words, ending)
        running.limiter.ending_if_unstorable = lambda error: replace(
            self._ending_of_failure(task, ValueError(f"what the attempt said or returned cannot be stored: {error}")),
            usage=ending.usage,
        )
        running.slot.__exit__(None, None, None)
        seconds = time.monotonic() - running.claimed_at
        attempt_ended(task, running.limiter.ending, running.limiter.outcome, seconds=seconds)
        running.span.note(windlass__outcome=running.limiter.outcome or "dropped")
        if exception is not None and not isinstance(exception, Stopped):
            running.span.fail(type(exception).__name__)
        if running.limiter.outcome is not None:
            _tell_end(task, running.limiter.outcome, seconds, exception)
        else:
            log.warning("task %s: attempt %d had lost it; its end is dropped", task.task_id, task.attempt)


def _tell_end(task: Claimed, outcome: str, seconds: float, exception: BaseException | None) -> None:
    """One line for each attempt that ended, with its time."""
    if exception is None:
        log.info("task %s: attempt %d %s in %.1f s", task.task_id, task.attempt, outcome, seconds)
        return
    cause = exception.error if isinstance(exception, Thrown) else exception
    why = type(cause).__name__ + (f": {cause}" if str(cause) else "")
    told = (task.task_id, task.attempt, seconds, why, outcome)
    log.info("task %s: attempt %d ended after %.1f s (%s); now %s", *told)

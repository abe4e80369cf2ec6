"""An attempt from its grant to its end, in the order in which it happens.

`grant`, `take_up`, `run` and `end` are called by whoever has it at the time: a thread of Dramatiq's, or, for who holds
none, the actors' loop. Nobody waits for the answer to its end, which comes on the writer's.
"""

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

from msgspec.structs import replace

from windlass.services.actors.worker.attempts import Attempts
from windlass.services.actors.worker.calls import Calls
from windlass.services.actors.worker.capacity import Kind
from windlass.services.actors.worker.context.context import Context, Stopped
from windlass.services.actors.worker.context.inputs import take_input
from windlass.services.actors.worker.coroutines.tether import to_its_end
from windlass.services.actors.worker.ending.exhaustion import lack_behind
from windlass.services.actors.worker.ending.refusals import HandedBack
from windlass.services.actors.worker.ending.results import fitting, fitting_async
from windlass.services.actors.worker.ending.retries import (
    ending_of_failure,
    ending_of_hand_back,
    ending_of_interrupt,
    ending_of_success,
)
from windlass.services.actors.worker.guests import Guests
from windlass.services.actors.worker.leases.lease_limiter import LeaseLimiter
from windlass.services.actors.worker.metrics import attempt_ended
from windlass.services.actors.worker.writing.last_words import before_the_end
from windlass.services.actors.worker.writing.writer import Writer
from windlass.shared import tracing
from windlass.shared.actors.attempt.waits import at_once
from windlass.shared.errors import Thrown
from windlass.shared.process import log_context
from windlass.shared.retry_delays import schedules_of_task
from windlass.shared.settings import Settings
from windlass.shared.store.tasks import Claimed, Ending

log = logging.getLogger("actors")


class Actor(Protocol):
    """What does the work of a task."""

    def run(self, context: Context) -> Any: ...


class AsyncActor(Protocol):
    """The same on the loop."""

    async def run_async(self, context: Context) -> Any: ...


def _nobody() -> None: ...


@dataclass(slots=True)
class Running:
    """What this process has under way: the slot it holds, and the attempt that holds it."""

    limiter: LeaseLimiter
    context: Context
    slot: AbstractContextManager[bool] = field(default_factory=nullcontext)  # type: ignore[arg-type]
    kind: Kind = "thread"
    is_taken_up: bool = False
    span: tracing.Span = tracing.NO_SPAN
    result: Any = None
    exception: BaseException | None = None
    granted_at: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    on_answered: Callable[[], None] = _nobody
    """Its end is written, or refused: nothing of it is left here."""


class Executor:
    """Takes slots through `LeaseLimiter`; there is no other way to run a task."""

    def __init__(
        self,
        writer: Writer,
        attempts: Attempts,
        calls: Calls,
        worker_id: str,
        *,
        settings: Settings,
        guests: Guests,
        condemn: Callable[[str], None],
    ) -> None:
        self._writer = writer
        self._attempts = attempts
        self._calls = calls
        self._worker_id = worker_id
        self._settings = settings
        self._guests = guests
        self._condemn = condemn
        self.closed = False

    def grant(self, task: Claimed, lease_end: float) -> Running:
        """Takes in an attempt that this process was given: from here on its lease is renewed and its stop is heard,
        however long it waits for a thread."""
        context = Context(
            task,
            self._worker_id,
            on_report=self._writer.report,
            calls=self._calls,
            begin_asking=self._writer.begin_call,
            begin_together=self._writer.begin_together,
            settings=self._settings,
            largest_output_bytes=self._settings.largest_output_bytes,
            largest_output_event_bytes=self._settings.largest_output_event_bytes,
        )
        self._attempts.add(context)
        spare = 2 * self._settings.stop_grace_seconds + self._settings.lease_margin_seconds
        return Running(LeaseLimiter(self._writer, task, lasts_until=lease_end - spare), context)

    def take_up(self, running: Running) -> bool:
        """Whether it may be run here and now. One that came too late for that is handed back."""
        running.slot = running.limiter.acquire(raise_on_failure=False)
        if self.closed or not running.slot.__enter__():
            self._hand_back(running)
            return False
        running.is_taken_up = True
        self._speak_of(running)
        return True

    def run(self, running: Running, actor: Actor) -> None:
        """Its time runs from here. What it returns is fitted to what can be kept, and then told to the guests."""
        context = running.context
        context.begin()
        at_once(take_input(context.asking))
        with self._guests.around(context.task) as tell:
            running.result = fitting(actor.run(context), self._settings)
            tell(running.result)

    async def run_async(self, running: Running, actor: AsyncActor) -> None:
        """The same on the loop, where whatever waits is awaited. The actor is cancelled when it should end, and over
        when all is that it has begun."""
        context = running.context
        context.begin()
        await take_input(context.asking_on_loop)
        async with self._guests.around_async(context.task) as tell:
            result = await to_its_end(context, actor.run_async(context))
            running.result = await fitting_async(context, result, self._settings)
            tell(running.result)

    def end(self, running: Running, exception: BaseException | None) -> None:
        """Judges how it ended and hands that to the writer. Whoever ran it is free; its lease is renewed until the
        answer is there."""
        running.exception = exception
        running.seconds = time.monotonic() - running.granted_at
        self._attempts.over(running.context)
        try:
            last_words = running.context.take_report()
            ending = before_the_end(last_words, self._judge(running))
        except Exception as error:  # noqa: BLE001 - recorded there
            self._lose(running, error)
        else:
            running.span.leave()
            self._hand_over(running, ending)
        finally:
            log_context.lay_down()

    def take_away(self, running: Running) -> None:
        """Ends it in its stead, from another thread: where it was, it never goes on. It has done nothing wrong."""
        if not running.is_taken_up:
            self._hand_back(running)
            return
        running.exception = Stopped()
        running.seconds = time.monotonic() - running.granted_at
        self._attempts.over(running.context)
        self._hand_over(running, before_the_end(running.context.take_report(), self._judge(running)))

    # Its parts

    def _speak_of(self, running: Running) -> None:
        """What this thread says and does from here on is about this attempt."""
        task = running.context.task
        log_context.take_up(task_id=task.task_id, attempt=task.attempt, traceparent=task.traceparent)
        queue = f"{task.actor}.{task.provider}"
        running.span = tracing.attempting(
            task.task_id, task.attempt, queue, self._worker_id, task.traceparent
        ).__enter__()

    def _hand_back(self, running: Running) -> None:
        """Nothing of it has begun."""
        running.exception = Stopped()
        self._attempts.over(running.context)
        running.limiter.says(
            ending_of_interrupt(running.context.task, self._settings.retries),
            answered=lambda _outcome: self._put_away(running),
            failed=lambda error: self._lose(running, error),
        )
        if self.closed:
            # What is asked for and not answered yet could be given this very task again.
            self._writer.after_the_last_answer(running.limiter.hand_back)
        else:
            running.limiter.hand_back()

    def _judge(self, running: Running) -> Ending:
        context = running.context
        ending = self._ending_of(running)
        return replace(ending, exit_code=context.exit_code, proof=context.proof, usage=context.spent)

    def _ending_of(self, running: Running) -> Ending:
        task, exception = running.context.task, running.exception
        if exception is None:
            return ending_of_success(task, running.result)
        if isinstance(exception, HandedBack):
            return ending_of_hand_back(task)
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

    def _hand_over(self, running: Running, ending: Ending) -> None:
        limiter, task = running.limiter, running.context.task
        limiter.says(
            ending,
            if_unstorable=lambda error: replace(
                self._ending_of_failure(
                    task, ValueError(f"what the attempt said or returned cannot be stored: {error}")
                ),
                usage=ending.usage,
            ),
            answered=lambda outcome: self._answered(running, outcome),
            failed=lambda error: self._lose(running, error),
        )
        running.slot.__exit__(None, None, None)

    # On the writer's loop

    def _answered(self, running: Running, outcome: str | None) -> None:
        task, exception = running.context.task, running.exception
        log_context.take_up(task_id=task.task_id, attempt=task.attempt, traceparent=task.traceparent)
        try:
            with running.span as span:
                attempt_ended(task, running.limiter.ending, outcome, seconds=running.seconds)
                span.note(windlass__outcome=outcome or "dropped")
                if exception is not None and not isinstance(exception, Stopped):
                    span.fail(type(exception).__name__)
                _tell_end(task, outcome, running.seconds, exception)
        except Exception:
            log.exception("task %s: its end is written, and could not be told", task.task_id)
        finally:
            log_context.lay_down()
            self._put_away(running)

    def _lose(self, running: Running, error: BaseException) -> None:
        """Nobody works on it any more, and its end could not be written."""
        task = running.context.task
        with log_context.about(task_id=task.task_id, attempt=task.attempt):
            log.error("task %s: its end could not be written; its lease will run out", task.task_id, exc_info=error)
        self._writer.forget(task.claim_token)
        running.span.leave()
        running.span.end()
        self._put_away(running)

    def _put_away(self, running: Running) -> None:
        running.exception = None  # its traceback holds all that the actor had, and this
        self._attempts.remove(running.context)
        running.on_answered()


def _tell_end(task: Claimed, outcome: str | None, seconds: float, exception: BaseException | None) -> None:
    """One line for each attempt that ended, with its time."""
    if outcome is None:
        log.warning("task %s: attempt %d had lost it; its end is dropped", task.task_id, task.attempt)
    elif exception is None:
        log.info("task %s: attempt %d %s in %.1f s", task.task_id, task.attempt, outcome, seconds)
    else:
        cause = exception.error if isinstance(exception, Thrown) else exception
        why = type(cause).__name__ + (f": {cause}" if str(cause) else "")
        told = (task.task_id, task.attempt, seconds, why, outcome)
        log.info("task %s: attempt %d ended after %.1f s (%s); now %s", *told)

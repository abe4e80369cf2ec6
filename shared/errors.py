"""What can go wrong with a task: a closed vocabulary whose kind decides between trying again and giving up."""

import traceback
from typing import Any, ClassVar, Literal

from windlass.shared.scrubbing import scrub, scrub_document

Kind = Literal["transient", "permanent"]
Fault = Literal["none", "user", "provider", "system"]


class TaskError(Exception):
    """An error that an actor raises on purpose; its class name is the error's `type` everywhere."""

    kind: Kind = "transient"
    delays: ClassVar[tuple[float, ...] | None] = None
    is_the_providers_fault: ClassVar[bool] = False
    """Whether it counts against the provider: its breaker looks at these and at successes alone."""
    fault: ClassVar[Fault] = "system"
    """Whose it is that a task died of it: what the user asked for, the provider, or Windlass and those who run it."""

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class RateLimited(TaskError):
    """The provider said 429; waiting for it costs no retry."""

    fault = "provider"
    delays = (60, 120, 300, 600)

    def __init__(self, message: str, *, retry_after: float | None = None, **details: Any) -> None:
        super().__init__(message, **details, **({} if retry_after is None else {"retry_after": retry_after}))
        self.retry_after = retry_after


class ServiceUnavailable(TaskError):
    """The provider answered 500, 502, 503 or 504, or said that it is overloaded."""

    fault = "provider"
    delays = (5, 10, 30, 60, 120)
    is_the_providers_fault = True


class NetworkTimeout(TaskError):
    """A connect or read timeout, or a lost connection."""

    fault = "provider"
    delays = (2, 5, 10, 30, 60)
    is_the_providers_fault = True


class TimedOut(TaskError):
    """The task's own timeout passed; the next attempt gets more time."""

    delays = (0,)


class WorkerLost(TaskError):
    """The lease expired: the worker died, froze or was cut off."""

    delays = (0, 5, 20, 45)


class SubprocessFailed(TaskError):
    """A subprocess ended with a non-zero exit code or a signal."""


class DeliveryFailed(TaskError):
    """A webhook's endpoint did not answer 2xx; the delay that it named counts before the schedule's."""

    fault = "user"

    def __init__(self, message: str, *, retry_after: float | None = None, **details: Any) -> None:
        super().__init__(message, **details, **({} if retry_after is None else {"retry_after": retry_after}))
        self.retry_after = retry_after


class PermanentError(TaskError):
    """An error that trying again cannot mend."""

    kind: Kind = "permanent"


class InvalidInput(PermanentError):
    """The provider or the actor refused the input."""

    fault = "user"


class Unauthorized(PermanentError):
    """The provider did not accept our key."""


class Forbidden(PermanentError):
    """The provider's answer was 403."""


class NotFound(PermanentError):
    """What the task refers to does not exist at the provider."""

    fault = "user"


class ContentRejected(PermanentError):
    """The provider's moderation refused the content."""

    fault = "user"


class QuotaExhausted(PermanentError):
    """The account at the provider has no credit left."""


class SubmitUnknown(PermanentError):
    """A paid order may or may not have been placed, and it could not be found out which."""

    fault = "provider"


class DeliveryDropped(PermanentError):
    """Nobody is there to be told any more: the webhook was deleted, or does not subscribe to such events."""

    fault = "user"


class OutOfMemory(PermanentError):
    """A subprocess went over its memory limit."""


class ResultTooLarge(PermanentError):
    """The work was done, but what came of it is larger than may be kept."""

    fault = "user"


class ResultTooDeep(PermanentError):
    """The work was done, but what came of it is JSON that is nested deeper than may be kept."""

    fault = "user"


class InvalidStep(PermanentError):
    """The actor calls two steps by one name, or one comes to what cannot be kept: a mistake in its code."""


class NotAwaited(PermanentError):
    """An `await` is missing in the actor: a coroutine stands where a value should, or a step never ran."""


class Expired(PermanentError):
    """The task was older than its `max_age_seconds` before it could start."""


class DependencyFailed(PermanentError):
    """A task that this one depends on died or was cancelled."""

    fault = "user"  # whosever it was, it was counted at that task


class Thrown(PermanentError):
    """An error of the actor's own that it has declared to be final, in `throws`: told by its own name."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.error = error


def _with_descendants(error: type[TaskError]) -> list[type[TaskError]]:
    return [error, *(below for child in error.__subclasses__() for below in _with_descendants(child))]


OUTSIDE = {TaskError, PermanentError, Thrown, DeliveryFailed, DeliveryDropped}
"""No types of the contract's: those without a name of their own, and the webhook actor's, which are to every table of
delays and to every count what any other exception is."""

ERROR_TYPES: dict[str, type[TaskError]] = {
    error.__name__: error for error in _with_descendants(TaskError) if error not in OUTSIDE
}


def fault_of(error_type: str) -> Fault:
    """Whose fault a stored error was, by its type's name; what is outside the vocabulary is a bug, and ours."""
    known = {error.__name__: error for error in _with_descendants(TaskError)}
    return known.get(error_type, TaskError).fault


def describe(error: BaseException, attempt: int) -> dict[str, Any]:
    """The error as it is stored and shown, without secrets: `{type, kind, message, details, stack_trace, attempt}`."""
    told = error.error if isinstance(error, Thrown) else error
    return {
        "type": type(told).__name__,
        "kind": error.kind if isinstance(error, TaskError) else "transient",
        "message": scrub(words_of(told)),
        "details": scrub_document(told.details) if isinstance(told, TaskError) else {},
        "stack_trace": scrub(_trace_of(told)),
        "attempt": attempt,
    }


def words_of(error: BaseException) -> str:
    """What it says, or its name where it says nothing: an exception is true also when it is empty."""
    return str(error) or type(error).__name__


def _trace_of(error: BaseException) -> str:
    """Of one that was raised in another process: where it was raised there."""
    elsewhere: str | None = getattr(error, "trace_elsewhere", None)
    return elsewhere or "".join(traceback.format_exception(error))

"""The failpoints of a worker: named moments of its pipeline at which a drill kills the process or holds a call.

The product does not know them. Each is a moment of a call of a function that the product has anyway: a worker that a
test starts with `Failpoints.environment` has these functions wrapped (`injection.py`).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from windlass.shared.providers.base import Ordered
from windlass.shared.store.tasks import Claimed


class Moment(Enum):
    BEFORE = auto()
    """The function is called and has not begun."""
    RETURNED = auto()
    """It has returned, and its caller does not have the result."""
    OVER = auto()
    """It has returned or raised."""


def of_every_call(*_arguments: Any, **_named: Any) -> bool:
    return True


@dataclass(frozen=True)
class Failpoint:
    name: str
    moment: Moment
    module: str
    function: str
    """Its qualified name in the module. A function that the module has imported is wrapped for this module alone."""
    only: Callable[..., bool] = of_every_call
    """Chooses calls, by their arguments (`BEFORE`) or their result."""
    may_wait: bool = True
    """Whether the caller may wait. Where it may not, a call that is held is made later, by a thread of its own."""


def of_kind(kind: str) -> Callable[..., bool]:
    return lambda _executor, running, _ending: running.kind == kind


def has_a_task(answers: Sequence[Any]) -> bool:
    return isinstance(answers[0], Claimed)


def is_ordered(answer: Any) -> bool:
    return isinstance(answer, Ordered)


def names_of(failpoints: Iterable[Failpoint]) -> tuple[str, ...]:
    """In their order; a name can stand for a moment of two functions."""
    return tuple(dict.fromkeys(each.name for each in failpoints))


BEFORE, RETURNED, OVER = Moment
ACTORS: Final = "windlass.services.actors"
ORDERS, FETCHING = f"{ACTORS}.media.orders", f"{ACTORS}.media.fetching"
WEBHOOK: Final = f"{ACTORS}.webhook.actor"
EXECUTOR, MIRROR = f"{ACTORS}.worker.executor", f"{ACTORS}.worker.mirror"
RUNNER: Final = f"{ACTORS}.worker.coroutines.runner"
WRITER, NEXT_TASKS = f"{ACTORS}.worker.writing.writer", f"{ACTORS}.worker.writing.next_tasks"
STORE: Final = "windlass.shared.store.tasks"

_MEDIA: Final = (
    Failpoint("media-intended", BEFORE, ORDERS, "place"),
    Failpoint("media-ordered", RETURNED, ORDERS, "place", only=is_ordered),
    Failpoint("media-job-known", RETURNED, ORDERS, "Orders._place"),
    Failpoint("media-job-done", RETURNED, ORDERS, "Orders.begin_to_fetch"),
    Failpoint("media-downloaded", RETURNED, FETCHING, "download"),
    Failpoint("media-file-kept", RETURNED, FETCHING, "Fetching._keep"),
    Failpoint("media-contents-kept", RETURNED, ORDERS, "Orders.complete"),
)

_WEBHOOKS: Final = (
    Failpoint("webhook-before-sending", BEFORE, WEBHOOK, "send"),
    Failpoint("webhook-answered", RETURNED, WEBHOOK, "send"),
)

# The steps of an attempt: it is known here and still waits; a thread or the loop has it; its slot is taken; it is
# inside the middleware; its actor has returned and the result is not fitted; it has left the middleware; its end is
# judged, and the writer does not have it.
_THREADS: Final = (
    Failpoint("thread-granted", BEFORE, f"{ACTORS}.worker.dramatiq_worker", "DeskWorker.run", may_wait=False),
    Failpoint("thread-fetched", BEFORE, MIRROR, "StateMirror.before_process_message"),
    Failpoint("thread-taken-up", BEFORE, EXECUTOR, "Executor.run"),
    Failpoint("thread-entered", BEFORE, f"{ACTORS}.making", "Worker.run"),
    Failpoint("thread-returned", BEFORE, EXECUTOR, "fitting"),
    Failpoint("thread-over", BEFORE, MIRROR, "StateMirror.after_process_message"),
    Failpoint("thread-judged", BEFORE, EXECUTOR, "Executor._hand_over", only=of_kind("thread"), may_wait=False),
)
_LOOP: Final = (
    Failpoint("loop-granted", BEFORE, RUNNER, "LoopRunner.run", may_wait=False),
    Failpoint("loop-fetched", BEFORE, RUNNER, "LoopRunner._attempt"),
    Failpoint("loop-taken-up", BEFORE, EXECUTOR, "Executor.run_async"),
    Failpoint("loop-entered", BEFORE, EXECUTOR, "to_its_end"),
    Failpoint("loop-returned", BEFORE, EXECUTOR, "fitting_async"),
    Failpoint("loop-over", OVER, EXECUTOR, "Executor.run_async"),
    Failpoint("loop-judged", BEFORE, EXECUTOR, "Executor._hand_over", only=of_kind("loop"), may_wait=False),
)

# A call of the writer's is wanted and not sent, or it is committed and the process does not know that yet.
_CLAIMS: Final = (
    Failpoint("doorbell-heard", BEFORE, WRITER, "Writer.hear", may_wait=False),
    Failpoint("claim-asked", BEFORE, NEXT_TASKS, "NextTasks.claim_next"),
    Failpoint("claim-answered", RETURNED, NEXT_TASKS, "NextTasks.claim_next"),
)
_ENDS: Final = (
    Failpoint("end-handed-over", BEFORE, WRITER, "Writer._write_ends"),
    Failpoint("end-written", RETURNED, STORE, "end"),
    Failpoint("end-written", RETURNED, STORE, "end_and_next"),
)

# The process that runs one task at a time claims in its own way. The other steps of its attempts are those above.
_ALONE: Final = (
    Failpoint("alone-claim-asked", BEFORE, WRITER, "Writer._claim_alone"),
    Failpoint("alone-claim-answered", RETURNED, STORE, "claim", only=has_a_task),
    Failpoint("alone-granted", BEFORE, f"{ACTORS}.worker.loner", "Loner._run"),
)

# The process is told to stop, and has not begun to.
_STOP: Final = (Failpoint("stop-heard", BEFORE, f"{ACTORS}.departure", "Departure._take_nothing_new"),)

CATALOGUE: Final = (*_MEDIA, *_WEBHOOKS, *_CLAIMS, *_THREADS, *_LOOP, *_ENDS, *_STOP, *_ALONE)

OF_MEDIA: Final = names_of(_MEDIA)
OF_WEBHOOKS: Final = names_of(_WEBHOOKS)
OF_THREADS: Final = names_of(_THREADS)
OF_THE_LOOP: Final = names_of(_LOOP)
OF_THE_LONER: Final = names_of(_ALONE)
(STOP_HEARD,) = names_of(_STOP)
PIPELINE: Final = names_of((*_CLAIMS, *_THREADS, *_LOOP, *_ENDS, *_STOP))
"""Of the worker that serves queues; `OF_THE_LONER` are those of the process next to it."""

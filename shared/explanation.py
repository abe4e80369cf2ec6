"""Why a task is not running: said from the same facts, and by the same function, as decide what may start."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from windlass.shared.admission import ProviderView, bar
from windlass.shared.holds import SAID_OF, Hold, said_of
from windlass.shared.reasons import Reason
from windlass.shared.states import TERMINAL, Lane, State


@dataclass(frozen=True)
class KeyView:
    """A task's concurrency key: how many may have it at once, how many have it, and how many that may start go
    before."""

    key: str
    limit: int | None
    running: int
    before: int = 0

    @property
    def is_full(self) -> bool:
        return self.limit is not None and self.running + self.before >= self.limit

    @property
    def details(self) -> dict[str, Any]:
        return {"key": self.key, "limit": self.limit, "running": self.running}


@dataclass(frozen=True)
class TaskView:
    """What the rows say about one task: `ahead` are the due ones of its own lane that go before it, or, of one
    that holds a slot, the others that do."""

    status: State
    lane: Lane
    available_at: datetime
    queue: str = ""
    expires_at: datetime | None = None
    worker_id: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    holds_a_slot: bool = False
    held: Sequence[str] = ()
    held_at: datetime | None = None
    is_given_up: bool = False
    """Its workflow is being cancelled, and nobody has come to it yet."""
    key: KeyView | None = None
    runs_alone: bool = False
    """It may have killed its workers, and starts in a process of its own."""
    alone_before: int = 0
    """Of those that run alone, how many go before it or run."""
    ahead: int = 0
    all_counted: bool = True
    unmet: Sequence[dict[str, Any]] = ()
    asked_at: datetime | None = None
    """Since when it waits for a person's word alone."""
    ask_expires_at: datetime | None = None
    ask: str | None = None


@dataclass(frozen=True)
class Explanation:
    reason: Reason
    message: str
    details: dict[str, Any] = field(default_factory=dict)


def explain(view: ProviderView, task: TaskView) -> Explanation:
    """The first thing that stands in the way, in the order in which the task will meet them."""
    if task.status not in {State.QUEUED, State.RETRYING}:
        return _of_state(task)
    if task.is_given_up:
        message = "its workflow is being cancelled, and it is about to be"
        return Explanation(Reason.FINISHED, message, {"status": task.status})
    if task.held:
        said = said_of(task.held)
        key = task.key.details if task.key and said.reason is Reason.KEY_LIMIT else {}
        return Explanation(said.reason, said.message, {"held": list(task.held), "since": task.held_at, **key})
    if task.expires_at is not None and task.expires_at <= view.at:
        message = "it has grown too old to start and is about to be buried"
        return Explanation(Reason.FINISHED, message, {"status": task.status, "expires_at": task.expires_at})
    return (
        _of_time(view, task)
        or _of_bar(view)
        or _of_queue(view, task)
        or _of_key(task)
        or _of_rate(view, task)
        or _of_trial(view, task)
        or _of_limit(view, task)
        or _of_place(view, task)
    )


def _of_state(task: TaskView) -> Explanation:
    if task.status is State.RUNNING:
        details = {"worker_id": task.worker_id, "since": task.started_at}
        return Explanation(Reason.RUNNING, f"worker {task.worker_id} is working on it", details)
    if task.status in TERMINAL:
        details = {"status": task.status, "completed_at": task.completed_at}
        return Explanation(Reason.FINISHED, f"it has ended: {task.status}", details)
    if task.asked_at is not None:
        details = {"since": task.asked_at, "expires_at": task.ask_expires_at, "message": task.ask}
        message = "it waits for a person's word: approve or reject it"
        return Explanation(Reason.WAITING_FOR_APPROVAL, message, details)
    number = len(task.unmet)
    message = f"it waits for {number} other task{'s' * (number != 1)} to complete"
    return Explanation(Reason.WAITING_FOR_DEPENDENCIES, message, {"unmet": list(task.unmet)})


def _of_time(view: ProviderView, task: TaskView) -> Explanation | None:
    """A task that waits for the end of its provider's pause waits for that, whatever its own time says."""
    if task.available_at <= view.at or (view.paused_until is not None and view.paused_until >= task.available_at):
        return None
    if task.status is State.RETRYING:
        message = "its last attempt failed; it is tried again at the time given"
        return Explanation(
            Reason.WAITING_FOR_TIME, message, {"until": task.available_at, "retry_at": task.available_at}
        )
    return Explanation(
        Reason.WAITING_FOR_TIME, "it is not to start before the time given", {"until": task.available_at}
    )


def _of_bar(view: ProviderView) -> Explanation | None:
    match bar(view):
        case Reason.BROKER_AWAY:
            message = "RabbitMQ cannot be reached, and nobody can be rung for; the task starts when it is back"
            return Explanation(Reason.BROKER_AWAY, message)
        case Reason.BROKER_BLOCKED:
            message = (
                "RabbitMQ takes no messages, for its memory or its disk is nearly used up; the task starts when it has "
                "room again"
            )
            return Explanation(Reason.BROKER_BLOCKED, message)
        case Reason.PROVIDER_PAUSED:
            return Explanation(Reason.PROVIDER_PAUSED, f"an operator has paused {view.name}")
        case Reason.RATE_LIMITED_UNTIL:
            message = f"{view.name} said that it is asked too much (429); nothing is started before the time given"
            return Explanation(Reason.RATE_LIMITED_UNTIL, message, {"until": view.paused_until})
        case Reason.BREAKER_OPEN:
            message = (
                f"the breaker of {view.name} is open after too many failures; nothing is started before the time given"
            )
            if view.breaker_until is None:
                message = f"an operator has opened the breaker of {view.name}"
            return Explanation(Reason.BREAKER_OPEN, message, {"until": view.breaker_until})
    return None


def _of_rate(view: ProviderView, task: TaskView) -> Explanation | None:
    """While somebody tries the provider, the others wait for that first."""
    if task.holds_a_slot or view.rate is None or view.rate_left != 0 or (view.on_trial and view.trial_running):
        return None
    limit, per_seconds = view.rate["limit"], view.rate["per_seconds"]
    message = f"the rate of {view.name} is used up ({limit} in {per_seconds} s); the next may start at the time given"
    if limit == 0:
        message = f"{view.name} has a rate of 0: nothing is started"
    details = {"until": view.rate_free_at, "limit": limit, "per_seconds": per_seconds}
    return Explanation(Reason.RATE_LIMITED_UNTIL, message, details)


def _of_queue(view: ProviderView, task: TaskView) -> Explanation | None:
    """Where others of its provider's queues are served, their tasks take the places that there are."""
    if not view.queues or task.queue in view.queues:
        return None
    return Explanation(Reason.NO_WORKER, f"no worker that is alive serves the queue {task.queue}")


def _of_key(task: TaskView) -> Explanation | None:
    """It is not parked yet, and will be when its turn comes."""
    if task.holds_a_slot or task.key is None or not task.key.is_full:
        return None
    return Explanation(Reason.KEY_LIMIT, SAID_OF[Hold.KEY].message, task.key.details)


def _of_trial(view: ProviderView, task: TaskView) -> Explanation | None:
    if not view.on_trial or (not view.trial_running and _goes_first(view, task)):
        return None
    details = {"until": view.paused_until or view.breaker_until, "trial_running": view.trial_running}
    if view.paused_until is not None:
        message = f"{view.name} was paused after a 429; one task goes first, the others follow when it gets through"
        return Explanation(Reason.RATE_LIMITED_UNTIL, message, details)
    return Explanation(
        Reason.BREAKER_OPEN,
        f"the breaker of {view.name} is half-open: one task tries, and its outcome decides",
        details,
    )


def _of_limit(view: ProviderView, task: TaskView) -> Explanation | None:
    if task.holds_a_slot or view.limit is None or view.held < view.limit:
        return None
    message = f"all slots of {view.name} are taken ({view.held} of {view.limit})"
    if view.limit == 0:
        message = f"{view.name} has a limit of 0: nothing is started"
    return Explanation(Reason.PROVIDER_LIMIT, message, {"limit": view.limit, "held": view.held})


def _of_place(view: ProviderView, task: TaskView) -> Explanation:
    if view.capacity == 0:
        return Explanation(Reason.NO_WORKER, f"no worker that is alive serves the queue of {view.name}")
    if task.runs_alone and (task.holds_a_slot or _goes_now(view, task)):
        return _of_place_alone(task)
    if task.holds_a_slot:
        message = "its job at the provider is open and its slot its own: the next free worker goes on waiting for it"
        return Explanation(Reason.ABOUT_TO_START, message)
    before = _before(view, task)
    if _goes_now(view, task) and before < view.idle_places:
        return Explanation(Reason.ABOUT_TO_START, "nothing stands in its way: the next free worker takes it")
    at_least = "" if task.all_counted else "at least "
    message = f"{at_least}{before} task{'s' * (before != 1)} of {view.name} go before it"
    if before == 0:
        message = f"it is the next of {view.name}; every worker is busy"
    return Explanation(Reason.BEHIND_OTHERS, message, {"position": before + 1, "exact": task.all_counted})


def _of_place_alone(task: TaskView) -> Explanation:
    """Its turn has come; what it still waits for is a process that nobody else is in."""
    message = "its worker died twice while it ran among few, so it runs in a process of its own"
    if task.alone_before == 0:
        return Explanation(Reason.NO_WORKER, f"{message}, which is being started", {"runs_alone": True})
    others = f"{task.alone_before} such task{'s' * (task.alone_before != 1)}"
    details = {"runs_alone": True, "position": task.alone_before + 1, "exact": True}
    return Explanation(Reason.BEHIND_OTHERS, f"{message}; {others} came before it", details)


def _before(view: ProviderView, task: TaskView) -> int:
    """How many due tasks of both lanes start before this one: those of its own lane, and the other lane's share."""
    fresh = task.lane is Lane.FRESH
    share = 100 - view.retry_share if fresh else view.retry_share
    others = view.retry_due if fresh else view.fresh_due
    return task.ahead + (others if share == 0 else min(others, task.ahead * (100 - share) // share))


def _goes_first(view: ProviderView, task: TaskView) -> bool:
    return task.ahead == 0 if task.holds_a_slot else _goes_now(view, task)


def _goes_now(view: ProviderView, task: TaskView) -> bool:
    return task.ahead < (view.fresh_starts if task.lane is Lane.FRESH else view.retry_starts)

"""What may start now, and whom to wake for it: pure functions of what the rows say about a provider."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from windlass.shared.reasons import Reason
from windlass.shared.states import Lane

Broker = Literal["connected", "blocked", "away"]
"""How RabbitMQ is, as a dispatcher sees it; blocked, it takes no messages: its memory or its disk is nearly used up."""


@dataclass(frozen=True)
class ProviderView:
    """What the rows say about one provider at one moment: all that is needed to decide how much may start."""

    name: str
    lane_credit: int
    limit: int | None
    held: int
    capacity: int
    fresh_due: int
    retry_due: int
    at: datetime = field(compare=False)
    resumes_due: int = 0
    """Those that hold a slot already, because their job at the provider is still open."""
    paused: bool = False
    paused_until: datetime | None = None
    breaker_state: str = "closed"
    breaker_until: datetime | None = None
    rate: Mapping[str, Any] | None = None
    rate_left: int | None = None
    """How many its rate lets start now; none when it has no rate."""
    rate_free_at: datetime | None = None
    """When the next place in its rate becomes free, should all that are left be taken now."""
    trial_running: bool = False
    next_at: datetime | None = None
    """When there will be something to do that cannot be done now."""
    retry_share: int = 30
    """Percent of the starts that go to retries while both lanes have something due, as the claims know it."""
    broker: Broker = "connected"
    queues: Sequence[str] = ()
    """From which tasks are started: its queues that somebody serves, or all of them while nobody serves any."""
    due_by_queue: Sequence[int] = ()
    """Of each of these: how many could start, and how many only go on waiting for an open job."""
    resumes_by_queue: Sequence[int] = ()
    idle_workers: Sequence[int] = ()
    """How many of those who serve it have a place free."""
    idle_places: int = 0
    """How many places are free in all workers that serve any of its queues."""


def bar(view: ProviderView) -> Reason | None:
    """What keeps everything from starting: nobody who would carry the doorbells, an operator, a rate limit or the
    breaker (without end, if an operator's)."""
    if view.broker == "away":
        return Reason.BROKER_AWAY
    if view.broker == "blocked":
        return Reason.BROKER_BLOCKED
    if view.paused:
        return Reason.PROVIDER_PAUSED
    if view.paused_until is not None and view.paused_until > view.at:
        return Reason.RATE_LIMITED_UNTIL
    if view.breaker_state != "closed" and (view.breaker_until is None or view.breaker_until > view.at):
        return Reason.BREAKER_OPEN
    return None


def is_on_trial(view: ProviderView) -> bool:
    """After a pause, and when the breaker's time is over, one task goes first and decides for all the others."""
    return view.paused_until is not None or view.breaker_state != "closed"


def free_places(view: ProviderView) -> int:
    """How many more may start, as far as so many are due."""
    free = view.fresh_due + view.retry_due
    if view.limit is not None:
        free = min(free, max(0, view.limit - view.held))
    if view.rate_left is not None:
        free = min(free, view.rate_left)
    if bar(view) is not None:
        return 0
    if is_on_trial(view):
        # Who holds a slot already is the one that tries, if there is such a one.
        return 0 if view.trial_running or view.resumes_due else min(1, free)
    return free


def picks(view: ProviderView) -> Iterator[tuple[Lane, int]]:
    """The lanes in the order in which their due tasks go, each with the lanes' credit after the pick.

    Each pick adds the retry lane's share to the credit; at 100 the pick is a retry's and costs 100. The credit is kept
    between calls, so that the ratio holds also when one task at a time may start. A lane that has nothing due gives
    its share away and earns no credit meanwhile. A trial is a fresh one's if there is any: who has never failed was
    never told 429, and one that is always told so would keep the provider paused.
    """
    fresh_left, retry_left = view.fresh_due, view.retry_due
    credit = view.lane_credit
    share = 0 if is_on_trial(view) else view.retry_share
    while fresh_left or retry_left:
        if fresh_left and retry_left:
            credit += share
        lane = Lane.RETRY if not fresh_left or (retry_left and credit >= 100) else Lane.FRESH
        if fresh_left and lane is Lane.RETRY:
            credit -= 100
        fresh_left -= lane is Lane.FRESH
        retry_left -= lane is Lane.RETRY
        yield lane, credit


@dataclass(frozen=True)
class WakeUp:
    """So many doorbells of one queue. Each says how many tasks its worker should ask for first: a burst is shared
    among the workers that are idle."""

    queue: str
    doorbells: int
    starts: int


def wake_ups(view: ProviderView) -> list[WakeUp]:
    """A doorbell for each idle worker, as far as tasks may start. A queue whose tasks are due but may not start now has
    one doorbell, too: a busy worker remembers it, and asks when a place becomes free."""
    if bar(view) is not None or (is_on_trial(view) and view.trial_running):
        return []
    free = free_places(view)
    found = []
    for queue, due, resumes, idle in zip(
        view.queues, view.due_by_queue, view.resumes_by_queue, view.idle_workers, strict=True
    ):
        if due + resumes > 0:
            startable = resumes + min(due, free)
            doorbells = max(1, min(idle, startable))
            found.append(WakeUp(queue, doorbells, max(1, -(-startable // doorbells))))
    return [WakeUp(found[0].queue, 1, 1)] if found and is_on_trial(view) else found

"""How many tasks of each lane may start now: a pure function of what the rows say about a provider."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from windlass.shared.reasons import Reason
from windlass.shared.states import Lane

CREDIT_OF_A_DOORBELL = 64
"""So many starts one doorbell stands for, at most, unless a worker has more places: what it cannot use it would keep
from others, and with less it would wait for the next one while it has places free."""

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
    most_places: int = 0
    """How many the largest of them has, of the kind that serves them."""


@dataclass(frozen=True)
class Admission:
    """So many of each lane, and the lanes' credit after they have gone; a trial is one that goes first."""

    fresh: int
    retry: int
    credit: int
    trial: bool = False
    resumes: int = 0

    @property
    def nobody(self) -> bool:
        return self.fresh + self.retry + self.resumes == 0


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


def resuming(view: ProviderView) -> int:
    """How many may go on waiting for jobs that are open at the provider: they need no place, in its limit or in its
    rate, only an open door."""
    if bar(view) is not None:
        return 0
    if is_on_trial(view):
        return 0 if view.trial_running else min(1, view.resumes_due)
    return view.resumes_due


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


def admit(view: ProviderView) -> Admission:
    """Shares the free places between the lanes; who holds a slot already needs none of them."""
    fresh = retry = 0
    credit = view.lane_credit
    resumes = resuming(view)
    if resumes and is_on_trial(view):
        return Admission(0, 0, credit, trial=True, resumes=resumes)
    for _, (lane, after) in zip(range(free_places(view)), picks(view), strict=False):
        fresh += lane is Lane.FRESH
        retry += lane is Lane.RETRY
        credit = after
    return Admission(fresh, retry, credit, trial=is_on_trial(view) and fresh + retry > 0, resumes=resumes)


@dataclass(frozen=True)
class Ringing:
    """What is rung in one queue: so many starts in all, by so many doorbells."""

    queue: str
    starts: int
    doorbells: int = 1


def ringing(view: ProviderView, out: Mapping[str, int]) -> list[Ringing]:
    """How many starts each queue is rung for; `out` is what was rung for there a moment ago and may still be under way.

    Those that go on waiting for open jobs hold their slots, so they are rung for however full the provider is. Where
    anything is due, at least one doorbell is out, whether or not there is a place for it now: that is how a worker that
    is busy with something else hears of it, and what it asks for when a place of its own becomes free.
    """
    if bar(view) is not None or (is_on_trial(view) and view.trial_running):
        return []
    found = []
    for queue, due, resumes, idle in zip(
        view.queues, view.due_by_queue, view.resumes_by_queue, view.idle_workers, strict=True
    ):
        level = 1 if is_on_trial(view) else resumes + max(min(due, free_places(view)), min(due, CREDIT_OF_A_DOORBELL))
        starts = min(level, due + resumes) - out.get(queue, 0)
        if starts > 0:
            credit = max(CREDIT_OF_A_DOORBELL, view.most_places)
            doorbells = max(min(idle, starts), -(-starts // credit), 1)
            found.append(Ringing(queue, starts, doorbells))
    return found[:1] if is_on_trial(view) else found


def would_start(view: ProviderView) -> list[str]:
    """The queues in which one more, should it come now, would start at once: nobody is before it, nothing is against
    it, and somebody who serves it has a place free."""
    if view.fresh_due + view.retry_due + view.resumes_due > 0 or is_on_trial(view):
        return []
    if free_places(replace(view, fresh_due=1)) == 0:
        return []
    return [queue for queue, idle in zip(view.queues, view.idle_workers, strict=True) if idle > 0]

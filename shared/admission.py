"""What the rows say about a provider, and which workers to wake for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from windlass.shared.reasons import Reason

Broker = Literal["connected", "blocked", "away"]
"""How RabbitMQ is, as a dispatcher sees it; blocked, it takes no messages: its memory or its disk is nearly used up."""


@dataclass(frozen=True)
class ProviderView:
    """What the rows say about one provider at one moment. What may start is decided by Postgres (`provider_gates.sql`),
    as it is for a claim."""

    name: str
    limit: int | None
    held: int
    capacity: int
    fresh_due: int
    retry_due: int
    at: datetime = field(compare=False)
    fresh_starts: int = 0
    """How many of each lane may start now."""
    retry_starts: int = 0
    resumes: int = 0
    """How many may go on waiting for a job that is open at the provider. They hold a slot already."""
    resumes_due: int = 0
    bar: Reason | None = None
    """Why nothing may start."""
    on_trial: bool = False
    """After a pause, and when the breaker's time is over, one task goes first and decides for all the others."""
    trial_running: bool = False
    paused_until: datetime | None = None
    breaker_until: datetime | None = None
    rate: Mapping[str, Any] | None = None
    rate_left: int | None = None
    """How many its rate lets start now; none when it has no rate."""
    rate_free_at: datetime | None = None
    """When the next place in its rate becomes free, should all that are left be taken now."""
    next_at: datetime | None = None
    """When there will be something to do that cannot be done now."""
    retry_share: int = 30
    """Percent of the starts that go to retries while both lanes have something due."""
    broker: Broker = "connected"
    queues: Sequence[str] = ()
    """From which tasks are started: its queues that somebody serves, or all of them while nobody serves any."""
    due_by_queue: Sequence[int] = ()
    """Of each of these: how many are due, and how many only go on waiting for an open job."""
    resumes_by_queue: Sequence[int] = ()
    idle_workers: Sequence[int] = ()
    """How many of those who serve it have a place free."""
    idle_places: int = 0
    """How many places are free in all workers that serve any of its queues."""


def bar(view: ProviderView) -> Reason | None:
    """What keeps everything from starting: RabbitMQ, which carries the doorbells, an operator, a rate limit or the
    breaker (without end, if an operator's)."""
    if view.broker == "away":
        return Reason.BROKER_AWAY
    if view.broker == "blocked":
        return Reason.BROKER_BLOCKED
    return view.bar


@dataclass(frozen=True)
class WakeUp:
    """So many doorbells of one queue. Each says how many tasks its worker should ask for first: a burst is shared
    among the workers that are idle."""

    queue: str
    doorbells: int
    starts: int
    is_for_later: bool = False
    """Nothing may start now: one such doorbell in a while is enough."""


def wake_ups(view: ProviderView) -> list[WakeUp]:
    """A doorbell for each idle worker, as far as tasks may start. A queue whose tasks are due but may not start now has
    one doorbell, too: a busy worker remembers it, and asks when a place becomes free."""
    if bar(view) is not None or (view.on_trial and view.trial_running):
        return []
    free = view.fresh_starts + view.retry_starts
    found = []
    for queue, due, resumes, idle in zip(
        view.queues, view.due_by_queue, view.resumes_by_queue, view.idle_workers, strict=True
    ):
        if due + resumes > 0:
            startable = resumes + min(due, free)
            doorbells = max(1, min(idle, startable))
            found.append(WakeUp(queue, doorbells, max(1, -(-startable // doorbells)), is_for_later=startable == 0))
    return [replace(found[0], doorbells=1, starts=1)] if found and view.on_trial else found

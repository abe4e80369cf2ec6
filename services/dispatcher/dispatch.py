"""One look of the dispatcher: which tasks could start now, and a wake-up for every queue that has some."""

import math
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from windlass.services.dispatcher.backlog import RetryBacklog
from windlass.services.dispatcher.publisher import Doorbell, Publisher
from windlass.shared.admission import ProviderView, WakeUp, wake_ups
from windlass.shared.db import Database
from windlass.shared.metrics.services import DISPATCH_BATCH, DISPATCH_CONFIRM_SECONDS, DOORBELLS
from windlass.shared.store.flow_control import providers

AGAIN_SECONDS = 2.0
"""So long a wake-up has to be answered. What is still due then is looked at again."""


@dataclass(frozen=True)
class Seen:
    """What a look has found."""

    waiting: set[str] = field(default_factory=set)
    """The providers that have due tasks. They are looked at again after a while, should nobody claim these."""
    anybody_idle: bool = False
    """Whether a worker that serves one of them has a place free."""
    next_in: dict[str, float] = field(default_factory=dict)
    """In how many seconds a provider will have something to do that could not be done now."""


class Reminders:
    """Which queues have had a doorbell for tasks that may not start yet: without this each submit to a full provider
    would ring, and a worker would ask in vain."""

    def __init__(self) -> None:
        self._at: dict[str, float] = {}

    def is_due(self, wanted: WakeUp) -> bool:
        if not wanted.is_for_later:
            return True
        now = time.monotonic()
        if now < self._at.get(wanted.queue, -math.inf) + AGAIN_SECONDS:
            return False
        self._at[wanted.queue] = now
        return True


async def dispatch_due(
    db: Database,
    publisher: Publisher,
    backlog: RetryBacklog,
    reminders: Reminders,
    *,
    heard_within_seconds: float,
    only: Collection[str] | None = None,
) -> Seen:
    """Looks at all providers, or only at these, and wakes workers for what may start."""
    views = await providers.look(db, heard_within_seconds=heard_within_seconds, only=only)
    await backlog.share(db, views)
    doorbells = [
        Doorbell(each.queue, each.starts, number)
        for view in views
        for each in wake_ups(replace(view, broker=publisher.state))
        if reminders.is_due(each)
        for number in range(each.doorbells)
    ]
    if doorbells:
        await _ring(publisher, doorbells)
    return Seen(
        {view.name for view in views if _has_due(view)},
        any(view.idle_places > 0 for view in views),
        {view.name: (view.next_at - view.at).total_seconds() for view in views if view.next_at is not None},
    )


def _has_due(view: ProviderView) -> bool:
    return view.fresh_due + view.retry_due + view.resumes_due > 0


async def _ring(publisher: Publisher, doorbells: Sequence[Doorbell]) -> None:
    started = time.monotonic()
    missed = await publisher.ring(doorbells)
    DISPATCH_CONFIRM_SECONDS.observe(time.monotonic() - started)
    DISPATCH_BATCH.observe(len(doorbells))
    _count((bell for bell in doorbells if bell not in missed), "confirmed")
    _count(missed, "missed")


def _count(doorbells: Iterable[Doorbell], result: str) -> None:
    for queue, number in Counter(bell.queue for bell in doorbells).items():
        DOORBELLS.labels(queue, result).inc(number)

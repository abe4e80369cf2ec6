"""One round of dispatching: look at the providers, decide how many may start, and ring for them."""

import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from windlass.services.dispatcher.backlog import RetryBacklog
from windlass.services.dispatcher.credit import CreditOut
from windlass.services.dispatcher.foresight import Foresight
from windlass.services.dispatcher.publisher import Doorbell, Publisher
from windlass.shared.admission import ProviderView, Ringing, ringing
from windlass.shared.db import Database
from windlass.shared.metrics.services import DISPATCH_BATCH, DISPATCH_CONFIRM_SECONDS, DOORBELLS
from windlass.shared.settings import Settings
from windlass.shared.store.flow_control import providers


@dataclass(frozen=True)
class Seen:
    """What a round has found."""

    waiting: set[str] = field(default_factory=set)
    """The providers where something is due: they are rung for again, should nobody come."""
    anybody_idle: bool = False
    """Whether somebody who serves one of them has a place free."""
    next_in: dict[str, float] = field(default_factory=dict)
    """In how many seconds there will be something to do that could not be done now, by provider."""


async def dispatch_due(
    db: Database,
    publisher: Publisher,
    backlog: RetryBacklog,
    credit: CreditOut,
    settings: Settings,
    *,
    foresight: Foresight,
    only: Collection[str] | None = None,
) -> Seen:
    """Rings for what may start now, of all providers or only of these, as far as it has not been rung for already."""
    with credit.kept():
        views = await providers.look(db, heard_within_seconds=settings.lease_seconds, only=only)
        await backlog.share(db, views)
        for view in views:
            credit.meet(view)
            foresight.learn(view)
        wanted = [each for view in views for each in ringing(replace(view, broker=publisher.state), credit)]
    doorbells = [bell for each in wanted for bell in _bells(each)]
    if doorbells:
        await ring(publisher, doorbells, credit)
    return Seen(
        {view.name for view in views if _has_due(view)},
        any(view.idle_places > 0 for view in views),
        {view.name: (view.next_at - view.at).total_seconds() for view in views if view.next_at is not None},
    )


def _has_due(view: ProviderView) -> bool:
    return view.fresh_due + view.retry_due + view.resumes_due > 0


def _bells(wanted: Ringing) -> list[Doorbell]:
    """Shared out evenly, so that everybody who has a place gets a part."""
    each, rest = divmod(wanted.starts, wanted.doorbells)
    return [Doorbell(wanted.queue, each + (number < rest), number) for number in range(wanted.doorbells)]


async def ring(publisher: Publisher, doorbells: Sequence[Doorbell], credit: CreditOut) -> list[Doorbell]:
    """Rings all of them, and returns those that were not rung. Their credit is out from now on, for a look may come
    before they are confirmed; what could not be rung is taken off again."""
    started = time.monotonic()
    for bell in doorbells:
        credit.rung(bell.queue, bell.starts)
    missed = await publisher.ring(doorbells)
    for bell in missed:
        credit.used(bell.queue, bell.starts)
    DISPATCH_CONFIRM_SECONDS.observe(time.monotonic() - started)
    DISPATCH_BATCH.observe(len(doorbells))
    _count((bell for bell in doorbells if bell not in missed), "confirmed")
    _count(missed, "missed")
    return missed


def _count(doorbells: Iterable[Doorbell], result: str) -> None:
    for queue, number in Counter(bell.queue for bell in doorbells).items():
        DOORBELLS.labels(queue, result).inc(number)

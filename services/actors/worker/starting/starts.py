"""Which tasks this process starts next: doorbells say which queues may have some, and free places ask for them.

Everything here happens on the writer's loop, so that nothing has to be locked.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from uuid_utils.compat import uuid4

from windlass.services.actors.worker.capacity import Capacity, Kind, queue_of
from windlass.services.actors.worker.clock import boot_time
from windlass.services.actors.worker.starting.aside import Aside
from windlass.services.actors.worker.starting.places import Places
from windlass.services.actors.worker.starting.ring import Ring
from windlass.shared import db
from windlass.shared.backoff import Backoff
from windlass.shared.errors import words_of
from windlass.shared.settings import provider_of
from windlass.shared.store.tasks import Ask, Claimed, Granted

log = logging.getLogger("actors.starts")

SELF_HELP_SECONDS = 15.0
"""So often a process with free places asks for all its queues by itself: a doorbell that was lost, and a dispatcher or
a broker that is away, cost no more than that."""

AGAIN_AFTER_A_FAULT_SECONDS = 1.0

HIDDEN_SECONDS = 0.05
"""So long a doorbell waits in a process without a free place before another process may have it. One that comes back
stays."""


class Doorbell(Protocol):
    """A message: its queue has something to start, and so many are to be asked for first."""

    queue: str
    starts: int
    was_elsewhere: bool

    def ack(self) -> None: ...

    def put_back(self) -> None: ...


@dataclass(frozen=True)
class Asked:
    """What was known when a call was sent."""

    full: set[str]
    """Of its queues."""
    heard: Mapping[str, int]


class Store(Protocol):
    """What is asked of Postgres."""

    async def claim_next(self, ask: Ask, epoch: int) -> Granted: ...

    async def recall(self, tokens: Sequence[UUID], epoch: int) -> Granted: ...

    async def unclaimable(self, queues: Sequence[str], aside: Sequence[UUID]) -> Mapping[UUID, str]: ...


class Starts:
    """Nothing is asked for without a place, of the kind that its queue needs."""

    def __init__(
        self,
        store: Store,
        *,
        capacity: Capacity,
        queues: Collection[str],
        on_granted: Callable[[Sequence[Claimed], float], None],
        on_suspect: Callable[[], None],
    ) -> None:
        self._store = store
        self._places = Places(capacity)
        self._queues = queues
        self._on_granted = on_granted
        self._on_suspect = on_suspect
        self._ring = Ring()
        self._heard: Counter[str] = Counter()
        """How many doorbells have come, by queue. A call may be too early for what came after it was sent."""
        self._full: set[str] = set()
        """Queues that have more due than may start: asked for again when an attempt of their provider has ended here or
        a doorbell comes."""
        self._asked: dict[int, Asked] = {}
        """By call that is under way."""
        self._waiting: set[Doorbell] = set()
        """For a place, before another process may have them."""
        self._guarded: set[str] = set()
        """Queues of providers that something guards, as far as it is known."""
        self._aside = Aside(store)
        self._epoch = 0
        self._wake = asyncio.Event()
        self._has_begun = asyncio.Event()
        self._unanswered: list[Ask] = []
        self._is_closed = False
        self._is_quiet = asyncio.Event()
        self._is_quiet.set()

    # What happens

    def ring(self, doorbell: Doorbell) -> None:
        if self._is_closed:
            doorbell.put_back()
            return
        self._full.discard(doorbell.queue)
        self._heard[doorbell.queue] += 1
        self._ring.add(doorbell.queue, doorbell.starts)
        if self._places.free_for(doorbell.queue) > 0 or doorbell.was_elsewhere:
            doorbell.ack()
        else:
            self._waiting.add(doorbell)
            asyncio.get_running_loop().call_later(HIDDEN_SECONDS, self._let_others_have, doorbell)
        self._wake.set()

    def _let_others_have(self, doorbell: Doorbell) -> None:
        if doorbell in self._waiting:
            self._waiting.remove(doorbell)
            (doorbell.ack if self._places.free_for(doorbell.queue) > 0 else doorbell.put_back)()

    def ended(self, claim_tokens: Sequence[UUID]) -> None:
        """The ends of these are written: their places are free."""
        for token in claim_tokens:
            if attempt := self._places.leave(token):
                self._unfill(attempt.provider)
        self._wake.set()

    def ask_for_all(self) -> None:
        """By itself: at its start, when a connection is back, and now and then."""
        if self._places.any_free() and not self._is_closed and self._has_begun.is_set():
            self._full.clear()
            for queue in self._queues:
                self._ring.add(queue, self._places.free_for(queue))
            self._wake.set()

    # What is asked

    def free(self, kind: Kind = "thread") -> int:
        return self._places.free(kind)

    def of(self, claim_token: UUID) -> Claimed | None:
        return self._places.held(claim_token)

    async def serve(self) -> None:
        """Asks whenever a place is free and a queue may have something for it. Until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._unanswered or (not self._is_closed and await self._ask_once()):
                if self._unanswered:
                    await self._recall(self._unanswered[0])
                    self._unanswered.pop(0)
                    self._note_quiet()

    def begin(self) -> None:
        """The worker is registered, its leases are renewed and its threads wait: now it may be given something."""
        self._has_begun.set()

    async def help_itself(self) -> None:
        await self._has_begun.wait()
        while True:
            self.ask_for_all()
            await asyncio.sleep(SELF_HELP_SECONDS)

    async def close(self) -> None:
        """Asks for nothing more; returns when all that was asked for is answered."""
        self._is_closed = True
        while self._waiting:
            self._waiting.pop().put_back()
        self._wake.set()
        await self._is_quiet.wait()

    def ask_with(self, ending: Sequence[UUID]) -> Ask | None:
        """What a call that ends these may ask for as well, for the places that they leave and those that are free: the
        next of the ring, but for guarded providers only if one of these ends is of a guarded one, since the call has to
        wait for their locks. Of a full provider as many as end of it. What ends of the other kind is asked for next."""
        if self._is_closed or self._unanswered:
            return None
        attempts = [attempt for token in ending if (attempt := self._places.held(token))]
        of_provider = Counter(attempt.provider for attempt in attempts)
        with_guarded = any(attempt.is_guarded for attempt in attempts)
        kind, free = self._places.left_by(attempts)

        def most_of(queue: str, _number: int) -> int:
            return of_provider[provider_of(queue)] if queue in self._full else free

        shares = self._share(kind, free, most_of)
        asked = {queue: places for queue, places in shares.items() if with_guarded or queue not in self._guarded}
        if not asked:
            return None
        return self._ask_for(asked, free)

    @property
    def epoch(self) -> int:
        return self._epoch

    async def _ask_once(self) -> bool:
        """Whether something was asked for, and answered."""
        for kind, free in self._places.in_turn():
            if shares := self._share(kind, free, lambda queue, number: 0 if queue in self._full else number):
                await self._ask_store(self._ask_for(shares, free))
                return True
        return False

    def _share(self, kind: Kind, places: int, most_of: Callable[[str, int], int]) -> Mapping[str, int]:
        """Deals places of a kind out to its queues."""
        kind_of = self._places.capacity.kind_of
        return self._ring.share(places, lambda queue, number: most_of(queue, number) if kind_of(queue) == kind else 0)

    async def _ask_store(self, ask: Ask) -> None:
        sent_at = boot_time()
        try:
            self.answered(ask, await self._store.claim_next(ask, self._epoch), sent_at)
        except db.AWAY_OR_BUSY as error:
            log.warning("asking again soon what was granted (%s)", words_of(error))
            self.unanswered(ask)
        except Exception:
            # Nothing of it was done, and nobody knows why: told again and again, but for whom it is known of.
            log.exception("what is next in %s could not be claimed", ", ".join(ask.places))
            self.unanswered(ask)
            if not await self._aside.look_for_more(list(ask.places)):
                await asyncio.sleep(AGAIN_AFTER_A_FAULT_SECONDS)

    def _ask_for(self, shares: Mapping[str, int], free: int) -> Ask:
        ask = Ask(shares, [uuid4() for _ in range(min(free, sum(shares.values())))], self._aside.now())
        self._places.ask(ask)
        self._asked[id(ask)] = Asked(self._full & set(shares), {queue: self._heard[queue] for queue in shares})
        self._is_quiet.clear()
        return ask

    def answered(self, ask: Ask, granted: Granted, sent_at: float) -> None:
        self._places.answer(ask)
        self._take(granted, sent_at)
        asked = self._asked.pop(id(ask))
        given = Counter(map(queue_of, granted.claimed))
        for queue, places in ask.places.items():
            has_news = self._heard[queue] != asked.heard[queue]
            if queue not in granted.more:
                if not has_news:
                    self._ring.drop(queue)
            elif given[queue] == places and queue not in asked.full:
                self._ring.add(queue, 2 * places)
            elif not has_news:
                self._full.add(queue)
        self._note_quiet()

    def unanswered(self, ask: Ask) -> None:
        """The call may have been done, or not, or may still come: it is recalled before anything else is asked."""
        del self._asked[id(ask)]
        self._unanswered.append(ask)
        self._wake.set()

    async def _recall(self, ask: Ask) -> None:
        """The places stay taken until it is known what was granted for them."""
        backoff = Backoff(first_seconds=0.05, longest_seconds=1)
        self._epoch += 1
        while True:
            sent_at = boot_time()
            try:
                granted = await self._store.recall(ask.tokens, self._epoch)
                break
            except db.AWAY_OR_BUSY:
                await asyncio.sleep(backoff.pause())
        self._places.answer(ask)
        self._take(granted, sent_at)
        self.ask_for_all()

    def _take(self, granted: Granted, sent_at: float) -> None:
        if granted.claimed:
            self._places.fill(granted.claimed)
            for each in granted.claimed:
                (self._guarded.add if each.is_guarded else self._guarded.discard)(queue_of(each))
            self._on_granted(granted.claimed, sent_at)
        if granted.suspects:
            self._on_suspect()

    def _unfill(self, provider: str) -> None:
        self._full.difference_update([queue for queue in self._full if provider_of(queue) == provider])

    def _note_quiet(self) -> None:
        if not self._places.are_asked_for() and not self._unanswered:
            self._is_quiet.set()

"""The places of this process, by kind: which are taken, and which are asked for."""

from collections import Counter
from collections.abc import Iterator, Sequence
from uuid import UUID

from windlass.services.actors.worker.capacity import Capacity, Kind, queue_of
from windlass.shared.store.tasks import Ask, Claimed


class Places:
    """One counter for each kind: those that nobody runs in, has been granted, or asks for. The places of one call are
    all of one kind: the claim shares them among a provider's queues, and these may be of both."""

    def __init__(self, capacity: Capacity) -> None:
        self.capacity = capacity
        self._held: dict[UUID, Claimed] = {}
        self._held_of: Counter[Kind] = Counter()
        self._asked_of: Counter[Kind] = Counter()
        self._turn: tuple[Kind, Kind] = ("thread", "loop")

    def free(self, kind: Kind) -> int:
        return self.capacity.of(kind) - self._held_of[kind] - self._asked_of[kind]

    def free_for(self, queue: str) -> int:
        return self.free(self.capacity.kind_of(queue))

    def any_free(self) -> bool:
        return any(self.free(kind) > 0 for kind in self._turn)

    def in_turn(self) -> Iterator[tuple[Kind, int]]:
        """Each kind of which some are free, and how many; the one that came last comes first the next time."""
        self._turn = self._turn[1], self._turn[0]
        for kind in self._turn:
            if (free := self.free(kind)) > 0:
                yield kind, free

    def held(self, claim_token: UUID) -> Claimed | None:
        return self._held.get(claim_token)

    def fill(self, attempts: Sequence[Claimed]) -> None:
        for attempt in attempts:
            self._held[attempt.claim_token] = attempt
            self._held_of[self.capacity.kind_of(queue_of(attempt))] += 1

    def leave(self, claim_token: UUID) -> Claimed | None:
        """The attempt that was in it; none if that has left already."""
        attempt = self._held.pop(claim_token, None)
        if attempt is not None:
            self._held_of[self.capacity.kind_of(queue_of(attempt))] -= 1
        return attempt

    def left_by(self, attempts: Sequence[Claimed]) -> tuple[Kind, int]:
        """The kind of which these leave the most places, and how many of it are free then."""
        leaving: Counter[Kind] = Counter(self.capacity.kind_of(queue_of(attempt)) for attempt in attempts)
        kind = leaving.most_common(1)[0][0] if leaving else self._turn[0]
        return kind, self.free(kind) + leaving[kind]

    def ask(self, ask: Ask) -> None:
        self._asked_of[self._kind_of(ask)] += len(ask.tokens)

    def answer(self, ask: Ask) -> None:
        self._asked_of[self._kind_of(ask)] -= len(ask.tokens)

    def are_asked_for(self) -> bool:
        return any(self._asked_of.values())

    def _kind_of(self, ask: Ask) -> Kind:
        return self.capacity.kind_of(next(iter(ask.places)))

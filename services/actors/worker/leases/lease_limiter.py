"""Slots as Dramatiq knows them: a rate limiter whose acquiring is the claim and whose releasing is the end."""

from collections.abc import Callable
from typing import Protocol
from uuid import UUID

from dramatiq.rate_limits import RateLimiter
from uuid_utils.compat import uuid4

from windlass.shared.db import UNSTORABLE
from windlass.shared.store.tasks import Claim, Claimed, Ending, Refused


class Ledger(Protocol):
    """Where claims and ends are written; both return once Postgres has them."""

    def claim(self, claim: Claim) -> Claimed | Refused: ...

    def end(self, ending: Ending) -> str | None: ...


class LeaseLimiter(RateLimiter):
    """One task's slot at its provider. The running row is the slot, so there is no counter that could drift.

    Dramatiq's `ConcurrentRateLimiter` is a counter with a shared time to live: it leaks after a crash and over-admits
    tasks that outlive it.
    """

    def __init__(self, ledger: Ledger, task_id: UUID) -> None:
        super().__init__(backend=None, key=str(task_id))  # type: ignore[no-untyped-call]
        self._ledger = ledger
        self._claim = Claim(task_id, uuid4())
        self.answer: Claimed | Refused | None = None
        self.ending: Ending | None = None
        self.ending_if_unstorable: Callable[[BaseException], Ending] | None = None
        self.outcome: str | None = None

    def _acquire(self) -> bool:
        self.answer = self._ledger.claim(self._claim)
        return isinstance(self.answer, Claimed)

    def _release(self) -> None:
        assert self.ending is not None, "an attempt is released by saying how it ended"
        assert self.ending_if_unstorable is not None, "and how, should that not be storable"
        try:
            self.outcome = self._ledger.end(self.ending)
        except UNSTORABLE as error:
            self.ending = self.ending_if_unstorable(error)
            self.outcome = self._ledger.end(self.ending)

"""Slots as Dramatiq knows them: a rate limiter that is made with a granted attempt and whose releasing is the end."""

from collections.abc import Callable
from typing import Protocol

from dramatiq.rate_limits import RateLimiter

from windlass.services.actors.worker.clock import boot_time
from windlass.services.actors.worker.writing.group_commit import Reply
from windlass.shared.db import UNSTORABLE
from windlass.shared.store.tasks import Claimed, Ending


class Ledger(Protocol):
    """Where ends are written. It returns at once, and tells the reply when Postgres has answered."""

    def hand_over(self, ending: Ending, reply: Reply[str | None]) -> None: ...


class LeaseLimiter(RateLimiter):
    """One task's slot at its provider. The running row is the slot, so there is no counter that could drift. Acquiring
    it says whether the lease still lasts: an answer that came too late is not started.

    Dramatiq's `ConcurrentRateLimiter` is a counter with a shared time to live: it leaks after a crash and over-admits
    tasks that outlive it.
    """

    def __init__(self, ledger: Ledger, task: Claimed, *, lasts_until: float) -> None:
        super().__init__(backend=None, key=str(task.task_id))  # type: ignore[no-untyped-call]
        self._ledger = ledger
        self._lasts_until = lasts_until
        self.ending: Ending
        self._if_unstorable: Callable[[BaseException], Ending] | None = None
        self._answered: Callable[[str | None], None]
        self._failed: Callable[[BaseException], None]

    def says(
        self,
        ending: Ending,
        *,
        if_unstorable: Callable[[BaseException], Ending] | None = None,
        answered: Callable[[str | None], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        """How the attempt ended, how if that cannot be stored, and who hears the answer."""
        self.ending, self._if_unstorable, self._answered, self._failed = ending, if_unstorable, answered, failed

    def _acquire(self) -> bool:
        return boot_time() < self._lasts_until

    def _release(self) -> None:
        self._ledger.hand_over(self.ending, self)

    def hand_back(self) -> None:
        """The slot of an attempt that was never taken up."""
        self._release()

    def give(self, outcome: str | None) -> None:
        """The task's status after it, or none when it no longer belonged to this worker."""
        self._answered(outcome)

    def fail(self, error: BaseException) -> None:
        if self._if_unstorable is None or not isinstance(error, UNSTORABLE):
            self._failed(error)
            return
        try:
            self.ending, self._if_unstorable = self._if_unstorable(error), None
        except Exception as worse:  # noqa: BLE001 - recorded there; whoever writes the ends of others goes on
            self._failed(worse)
            return
        self._ledger.hand_over(self.ending, self)

"""Whether the actors' loop goes round, as another thread sees it, and who keeps it from that."""

import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from windlass.services.actors.worker.coroutines.belongings import Belongings
from windlass.services.actors.worker.coroutines.loop import ActorsLoop

LONGEST_COUNTED_SECONDS = 1.0
"""Of the time between two looks: a process that was stopped, or had no turn, was not stuck."""


@dataclass(frozen=True)
class Stuck:
    """The loop has not answered for too long, and nobody on it goes on; `culprit` is whose step it is in, if it is an
    attempt's."""

    culprit: Belongings | None
    where: str


class LoopWatch:
    """Looked at again and again by one thread. A loop that has much to do answers late, but its steps go on: one that
    is stuck is in the same step for all of the grace."""

    def __init__(
        self,
        loop: ActorsLoop,
        thread_id: int,
        *,
        grace_seconds: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._loop = loop
        self._thread_id = thread_id
        self._grace_seconds = grace_seconds
        self._is_answered = True
        self._step = loop.gate.seen()
        self._silent_seconds = 0.0
        self._now = now
        self._looked_at = now()

    def look(self) -> Stuck | None:
        """Closes the gate, for good, when the loop is stuck."""
        now = self._now()
        passed, self._looked_at = min(now - self._looked_at, LONGEST_COUNTED_SECONDS), now
        step = self._loop.gate.seen()
        if self._is_answered:
            self._is_answered, self._step, self._silent_seconds = False, step, 0.0
            self._loop.call_soon_threadsafe(self._answer)
        elif step != self._step:
            self._step, self._silent_seconds = step, 0.0
        else:
            self._silent_seconds += passed
            if self._silent_seconds > self._grace_seconds and self._loop.gate.close_behind(step):
                return Stuck(step[1], self._where())
        return None

    def _answer(self) -> None:
        self._is_answered = True

    def _where(self) -> str:
        frame = sys._current_frames().get(self._thread_id)  # noqa: SLF001 - documented, for this purpose
        at = traceback.extract_stack(frame)[-1] if frame is not None else None
        return "" if at is None else f"{at.filename}, line {at.lineno}, in {at.name}"

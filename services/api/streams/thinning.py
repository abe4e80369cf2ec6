"""What is told of many tasks, and when: everything at once, or what somebody can follow who shows a list of them."""

from dataclasses import dataclass
from math import inf
from uuid import UUID

from windlass.services.api.streams.cursors import Cursor
from windlass.services.api.streams.messages import UNTOLD
from windlass.shared.store.reading.commit_order import NO_STATE
from windlass.shared.store.reading.events import EventWithState

SECOND = 1.0
MOST_A_SECOND = 100

Read = list[tuple[EventWithState | None, Cursor]]
"""Events, each with the cursor behind it."""


@dataclass(frozen=True)
class Held:
    """Progress that came too soon after the last one, and where a reader stood before it."""

    event: EventWithState
    before: Cursor
    due_at: float


class Everything:
    """Each event at once, as it was read."""

    is_storm = False

    def __init__(self, cursor: Cursor) -> None:
        self.place = cursor

    def seconds_until_due(self, now: float) -> float:  # noqa: ARG002 - nothing is ever held back
        return inf

    def thin(self, read: Read, now: float, skipped_to: Cursor | None = None) -> Read:  # noqa: ARG002
        self.place = read[-1][1]
        return [(event, cursor) for event, cursor in read if event is not None]


class StateOnly:
    """Every change of state at once, of each task's progress the last of a second.

    More than `MOST_A_SECOND` are not told one by one: when their second is over, a `resync` (no event) stands for all.
    Times are those of a monotonic clock.
    """

    def __init__(self, cursor: Cursor) -> None:
        self._read = cursor
        self._held: dict[UUID, Held] = {}
        self._progress_told_at: dict[UUID, float] = {}
        self._second_ends_at = 0.0
        self._number = 0
        self.is_storm = False
        self._missed_from: Cursor | None = None

    @property
    def place(self) -> Cursor:
        """Where to come back to without a loss: what was read and is not told yet lies behind it."""
        if self._missed_from is not None:
            return self._missed_from
        return next(iter(self._held.values())).before if self._held else self._read

    def seconds_until_due(self, now: float) -> float:
        """Until there is something to tell, whether or not anything happens."""
        due = [each.due_at for each in self._held.values()]
        due += [] if self._missed_from is None else [self._second_ends_at]
        return max(0, min(due, default=inf) - now)

    def thin(self, read: Read, now: float, skipped_to: Cursor | None = None) -> Read:
        """Takes each event with the cursor behind it, and says what to tell now; no event is a `resync`, which is owed,
        too, for what was not even read."""
        told = self._begin_a_second(now) if now >= self._second_ends_at else []
        for event, cursor in read:
            before, self._read = self._read, cursor
            if event is not None and event.type not in NO_STATE and event.type not in UNTOLD:
                told += self._take(event, before, now)
        for each in [each for each in self._held.values() if each.due_at <= now]:
            told += self._tell(each.event, each.before, now)
        if skipped_to is not None:
            self._missed_from, self._read = self.place, skipped_to
        return told

    def _begin_a_second(self, now: float) -> Read:
        was_missed, self._missed_from = self._missed_from is not None, None
        self.is_storm = self._number > MOST_A_SECOND
        self._number, self._second_ends_at = 0, now + SECOND
        recently = {task_id: at for task_id, at in self._progress_told_at.items() if now < at + SECOND}
        self._progress_told_at = recently
        return [(None, self._read)] if was_missed else []

    def _take(self, event: EventWithState, before: Cursor, now: float) -> Read:
        if event.type != "progress":
            return self._tell(event, before)
        free_at = self._progress_told_at.get(event.task_id, now - SECOND) + SECOND
        if now >= free_at or self.is_storm:
            return self._tell(event, before, now)
        self._held.pop(event.task_id, None)  # to the end: the first one is where a reader comes back to
        self._held[event.task_id] = Held(event, before, free_at)
        return []

    def _tell(self, event: EventWithState, before: Cursor, progress_at: float | None = None) -> Read:
        back = next(iter(self._held.values())).before if self._held else before
        self._held.pop(event.task_id, None)  # it is older, and no more true
        if progress_at is not None:
            self._progress_told_at[event.task_id] = progress_at
        self._number += 1
        self.is_storm = self.is_storm or self._number > MOST_A_SECOND
        if self.is_storm:
            self._missed_from = self._missed_from or back
            self._held.clear()
            return []
        return [(event, self.place)]

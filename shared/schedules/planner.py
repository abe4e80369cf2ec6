"""What is due: from a schedule, the last time that it was seen to, and the present, to what becomes of each time since.

Pure: whoever plans the same plans the same, and the key of each occurrence's row makes sure that it is done once.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from windlass.shared.schedules.times import Rule
from windlass.shared.schedules.words import CatchUp

ON_TIME_SECONDS = 60.0
"""Up to this late is on time: an orchestrator that was restarted, or was busy, has not missed anything."""

MOST_ROWS = 1000
"""Of one gap; what was missed before those is told in one row."""

MOST_CAUGHT_UP = 100
MOST_WALKED = 10_000
"""So many times of a cron expression are counted, and not a year of minutes."""


@dataclass(frozen=True)
class Planned:
    """One due time that has come: it is to be started, or was missed, and why. One row may tell of many that were."""

    due_at: datetime
    missed_because: str | None = None
    count: int = 1
    until: datetime | None = None


@dataclass(frozen=True)
class Plan:
    """What is to be written for the times that have come, in their order, and which is the next."""

    occurrences: Sequence[Planned]
    next_due_at: datetime | None
    next_at: datetime | None

    @property
    def last_due_at(self) -> datetime | None:
        if not self.occurrences:
            return None
        return self.occurrences[-1].until or self.occurrences[-1].due_at


@dataclass(frozen=True)
class Policy:
    """Which times, and what is caught up with."""

    rule: Rule
    catch_up: CatchUp = CatchUp.LATEST
    window_seconds: float = 3600


def due(schedule: Policy, last: datetime, now: datetime, *, all_missed: str | None = None) -> Plan:
    """Every time behind `last` that has come by `now` is in the plan, once. A clock that goes back plans nothing, for
    nothing is behind `last`. `all_missed` is why nothing of it is to be started: it was paused, or restored."""
    folded, times = _have_come(schedule, last, now)
    chosen = frozenset[datetime]() if all_missed else _to_be_started(schedule, times, now)
    reason = all_missed or ("superseded" if chosen else "too-late")
    occurrences = (
        [] if folded is None else [Planned(folded.due_at, all_missed or "too-late", folded.count, folded.until)]
    )
    for due_at in times:
        if due_at in chosen:
            occurrences.append(Planned(due_at))
        else:
            late = now - schedule.rule.fires_at(due_at) > _window(schedule)
            occurrences.append(Planned(due_at, all_missed or ("too-late" if late else reason)))
    reached = occurrences[-1].until or occurrences[-1].due_at if occurrences else last
    next_due_at = next(schedule.rule.after(reached), None)
    return Plan(occurrences, next_due_at, None if next_due_at is None else schedule.rule.fires_at(next_due_at))


def first(rule: Rule, now: datetime) -> Plan:
    """Of a schedule that is new, or another than it was: from now on."""
    next_due_at = next(rule.after(now), None)
    return Plan((), next_due_at, None if next_due_at is None else rule.fires_at(next_due_at))


def backfilled(rule: Rule, begin: datetime, end: datetime, *, at_most: int) -> list[datetime]:
    """The times from one moment to another, both with, and one more than may be if there are more."""
    return list(islice(rule.between(begin - timedelta(microseconds=1), end), at_most + 1))


def _window(schedule: Policy) -> timedelta:
    seconds = 0 if schedule.catch_up == CatchUp.NONE else schedule.window_seconds
    return timedelta(seconds=max(seconds, ON_TIME_SECONDS))


def _to_be_started(schedule: Policy, times: Sequence[datetime], now: datetime) -> frozenset[datetime]:
    window = _window(schedule)
    in_time = [each for each in times if now - schedule.rule.fires_at(each) <= window]
    return frozenset(in_time[-(MOST_CAUGHT_UP if schedule.catch_up == CatchUp.ALL else 1) :])


def _have_come(schedule: Policy, last: datetime, now: datetime) -> tuple[Planned | None, list[datetime]]:
    """The latest, each for itself, and those before them together. In their order: with jitter one may be ready before
    its turn, and waits for it."""
    rule = schedule.rule
    folded = None
    if rule.every_seconds is not None:
        step = timedelta(seconds=rule.every_seconds)
        first_one = next(rule.after(last))
        number = max((now - first_one) // step + 1, 0)
        if number > MOST_ROWS:
            folded = Planned(first_one, count=number - MOST_ROWS, until=first_one + (number - MOST_ROWS - 1) * step)
        begin = last if folded is None or folded.until is None else folded.until
        times = list(rule.between(begin, now))
    else:
        walked = list(islice(rule.between(last, now), MOST_WALKED + 1))
        if len(walked) > MOST_WALKED:
            # There is no need to know how many it was, and nobody to wait for who counts a year of minutes.
            begin = max(now - max(timedelta(minutes=MOST_ROWS), _window(schedule)), walked[-1])
            times = list(deque(rule.between(begin, now), MOST_ROWS))
            until = times[0] - timedelta(seconds=1) if times else now
            folded = Planned(walked[0], count=MOST_WALKED, until=until)
        else:
            times = walked[-MOST_ROWS:]
            if len(walked) > MOST_ROWS:
                before = walked[:-MOST_ROWS]
                folded = Planned(before[0], count=len(before), until=before[-1])
    ready = [rule.fires_at(each) <= now for each in times]
    return folded, times[: ready.index(False)] if False in ready else times

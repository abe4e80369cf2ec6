"""When a schedule is due: the times of its cron expression in its zone, or every so many seconds."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import takewhile
from uuid import UUID
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

LONGEST_EXPRESSION = 200
WEEKDAYS = "on Monday through Friday"
FIELDS = 5
"""With a sixth, which cronsim would take for seconds, something could be due every second."""


@dataclass(frozen=True)
class Rule:
    """Which times: `cron` in `timezone`, or every so many seconds from `anchor` on. Each is `jitter_seconds` late at
    most, always by the same."""

    schedule_id: UUID
    anchor: datetime
    cron: str | None = None
    every_seconds: int | None = None
    timezone: str = "UTC"
    jitter_seconds: float = 0

    def after(self, moment: datetime) -> Iterator[datetime]:
        """The due times behind a moment, in UTC, each later than the one before."""
        if self.cron is not None:
            return cron_times(self.cron, self.timezone, moment)
        return self._steps_after(moment)

    def _steps_after(self, moment: datetime) -> Iterator[datetime]:
        step = timedelta(seconds=self.every_seconds or 0)
        number = max((moment - self.anchor) // step + 1, 0)
        while True:
            yield self.anchor + number * step
            number += 1

    def between(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Behind the one moment, up to and with the other."""
        return takewhile(lambda each: each <= until, self.after(after))

    def fires_at(self, due_at: datetime) -> datetime:
        """Whoever asks, and however often: a hash of the schedule and the time."""
        if not self.jitter_seconds:
            return due_at
        digest = hashlib.sha256(f"{self.schedule_id} {int(due_at.timestamp())}".encode()).digest()
        return due_at + timedelta(seconds=self.jitter_seconds * int.from_bytes(digest[:6]) / 2**48)


def cron_times(expression: str, timezone: str, moment: datetime) -> Iterator[datetime]:
    """By the rules of Debian's cron: a time that does not exist is due at the change, one that exists twice is due
    once, and what is due every so many minutes, or every hour, goes on as if nothing had changed.

    The library gives a time that exists twice as the first of the two, also to who asks in between: what is not later
    than the moment is left out. It compares wall clocks; instants are compared here.
    """
    last = moment
    for local in CronSim(expression, moment.astimezone(zone(timezone))):
        due_at = local.astimezone(UTC)
        if due_at > last:
            yield due_at
            last = due_at


@cache
def zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def fault_of_cron(expression: str) -> str | None:
    """What is wrong with an expression, for who wrote it."""
    if len(expression) > LONGEST_EXPRESSION:
        return f"an expression has {LONGEST_EXPRESSION} characters at most"
    if len(expression.split()) != FIELDS:
        return "it has five fields: minute, hour, day of the month, month, day of the week"
    try:
        due = next(CronSim(expression, datetime(2026, 1, 1, tzinfo=UTC)), None)
    except (CronSimError, AssertionError, ValueError) as error:
        return f"it cannot be read: {str(error) or 'no cron expression'}"
    return "it is never due" if due is None else None


def fault_of_zone(name: str) -> str | None:
    try:
        zone(name)
    except (KeyError, OSError, ValueError):  # not found, a folder of them, no name at all
        return f"there is no time zone {name}; write one as Europe/Berlin, or UTC"
    return None


def in_words(rule: Rule) -> str:
    """As a person would say it."""
    if rule.cron is not None:
        said: str = CronSim(rule.cron, rule.anchor).explain()
        return f"{said.replace(WEEKDAYS, 'every weekday')} ({rule.timezone})"
    seconds = rule.every_seconds or 0
    for length, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds % length == 0:
            number = seconds // length
            return f"Every {unit}" if number == 1 else f"Every {number} {unit}s"
    return f"Every {seconds} seconds"

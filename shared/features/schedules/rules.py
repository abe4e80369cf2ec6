"""What becomes of a due time, and of a schedule whose runs fail: pure functions."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from windlass.shared.schedules.words import Cause, Kind, Outcome, Overlap

FAILED_ENDS = ("dead", "failed", "lost")
GOOD_ENDS = ("completed", "finished")

NOTHING_TO_DO = ("queue-already-running", "backlog-empty")
"""Reasons of a project that are no failure of the schedule."""

MAY_BE_BACKFILLED = (Outcome.MISSED, Outcome.SKIPPED, Outcome.REFUSED)


@dataclass(frozen=True)
class Occurrence:
    """A due time that may start, and what it starts."""

    due_at: datetime
    cause: str
    start: dict[str, Any]
    has_waited: bool = False


@dataclass(frozen=True)
class Verdict:
    """What happens to a due time, and why."""

    outcome: Outcome
    reason: str | None = None
    cancels_previous: bool = False
    """The live runs are cancelled first. If that ends all of them, the due time is started at once."""


START = Verdict(Outcome.STARTED)


def kind_of(start: dict[str, Any]) -> Kind:
    """What a start makes. One that waited may be of another kind than its schedule is now."""
    if "workflow" in start:
        return Kind.WORKFLOW
    return Kind.TASK if "actor" in start else Kind.PROJECT


def verdict(*, overlap: str, cause: str, is_paused: bool, has_key: bool, has_waiting: bool, has_live: bool) -> Verdict:
    """Whether a due time starts, given what was started before. A backfill starts every time that it names."""
    if is_paused and cause == Cause.TIME:
        return Verdict(Outcome.MISSED, "paused")
    if not has_key:
        return Verdict(Outcome.REFUSED, "owner-has-no-key")
    if cause == Cause.BACKFILL or overlap == Overlap.ALLOW or not (has_waiting or has_live):
        return START
    if overlap == Overlap.SKIP:
        return Verdict(Outcome.SKIPPED, "previous-live")
    if overlap == Overlap.CANCEL_PREVIOUS:
        return Verdict(Outcome.WAITING, "previous-stopping", cancels_previous=True)
    return Verdict(Outcome.SKIPPED, "another-waits") if has_waiting else Verdict(Outcome.WAITING, "previous-live")


def verdict_after_waiting(*, has_key: bool) -> Verdict:
    """Nothing is in the way of it any more."""
    return START if has_key else Verdict(Outcome.REFUSED, "owner-has-no-key")


def is_settled(outcome: str, cause: str, *, is_summary: bool) -> bool:
    """Whether a due time that has a row stays as it is. Only a backfill starts one that was not started; a row that
    summarizes many missed times is never started."""
    return cause != Cause.BACKFILL or is_summary or outcome not in MAY_BE_BACKFILLED


def refused(reason: str) -> Verdict:
    """A start that the engine declined."""
    return Verdict(Outcome.SKIPPED if reason in NOTHING_TO_DO else Outcome.REFUSED, reason)


def failures_after(failures: int, ended_as: str) -> int:
    """Failures in a row. A cancelled or stopped run is neither a failure nor a success."""
    if ended_as in FAILED_ENDS:
        return failures + 1
    return 0 if ended_as in GOOD_ENDS else failures


def pauses(failures: int, limit: int | None) -> bool:
    return limit is not None and failures >= limit

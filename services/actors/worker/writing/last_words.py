"""What an attempt has said and nobody has written yet: it goes with what it says next, in the order it was said."""

from dataclasses import replace
from typing import Any

from msgspec.structs import replace as replace_in

from windlass.shared.store.tasks import Ending, Report
from windlass.shared.usage import added


def joined(earlier: Report | None, later: Report | None) -> Report | None:
    """Two reports of one attempt as one. Of progress the latest counts; the later one's number stands for both."""
    if earlier is None or later is None:
        return earlier or later
    spoken = [event for event in earlier.events if event["type"] != "progress" or later.progress is None]
    return replace(
        later,
        progress=_latest(earlier.progress, later.progress),
        checkpoint=_latest(earlier.checkpoint, later.checkpoint),
        events=[*spoken, *later.events],
        usage=_together(earlier.usage, later.usage),
    )


def before_the_end(report: Report | None, ending: Ending) -> Ending:
    """What was said goes before the end, in the same call."""
    if report is None:
        return ending
    return replace_in(
        ending,
        progress=_latest(report.progress, ending.progress),
        checkpoint=_latest(report.checkpoint, ending.checkpoint),
        events=[*report.events, *ending.events],
        usage=_together(report.usage, ending.usage),
    )


def _together(earlier: dict[str, float] | None, later: dict[str, float] | None) -> dict[str, float] | None:
    return added(earlier or {}, later or {}) or None


def _latest(earlier: Any, later: Any) -> Any:
    return earlier if later is None else later

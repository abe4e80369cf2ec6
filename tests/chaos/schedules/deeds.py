"""The schedules of a storm, and what people are going to do to them: thrown by dice, known before the first."""

import random
from dataclasses import dataclass
from typing import Any

from tests.chaos.faults.plan import Pack

KINDS = (
    "edit", "edit", "pause", "pause", "resume", "resume", "trigger", "trigger", "backfill", "sleep", "sleep", "look",
)  # fmt: skip
"""`sleep`: all of its times of the last minutes are due once more, as if nobody had looked."""
OVERLAPS = ("skip", "queue-one", "allow", "cancel-previous")
CATCH_UPS = ("none", "latest", "all")
PERIODS = (10, 10, 11, 13, 17)


@dataclass(frozen=True)
class Deed:
    at: float
    """Seconds after the beginning."""
    kind: str
    dice: int


def plan(dice: random.Random, *, deeds: int, seconds: float) -> list[Deed]:
    """In the order of their times; all kinds come before any comes again."""
    kinds = Pack(dice, KINDS)
    times = sorted(dice.uniform(0, seconds) for _ in range(deeds))
    return [Deed(at, kinds.deal(), dice.getrandbits(32)) for at in times]


def definitions(dice: random.Random, number: int, projects: list[str]) -> list[dict[str, Any]]:
    """All overlaps with all catch-ups, each with a target of every kind in turn."""
    ways = [(overlap, catch_up) for overlap in OVERLAPS for catch_up in CATCH_UPS]
    found = []
    for each in range(number):
        overlap, catch_up = ways[each % len(ways)]
        found.append(
            {
                "name": f"storm-{each}",
                "every_seconds": dice.choice(PERIODS),
                "overlap": overlap,
                "catch_up": catch_up,
                "catch_up_window_seconds": dice.choice((60, 300, 3600)),
                "jitter_seconds": dice.choice((0, 0, 0, 2)),
                "target": a_target(dice, each, projects, may_last=overlap != "allow"),
            }
        )
    return found


def a_target(dice: random.Random, number: int, projects: list[str], *, may_last: bool) -> dict[str, Any]:
    """Some last longer than their period: something is in the way of the next one then."""
    if number % 10 == 7:
        return {"project": {"project_id": projects[number // 10 % len(projects)], "mode": "single"}}
    seconds = round(dice.choice((0.0, 0.1, 0.5, 14.0 if may_last else 1.0)), 2)
    probe = {"actor": "probe", "payload": {"seconds": seconds}, "max_retries": 20}
    if number % 10 in {3, 6}:
        quick = {**probe, "payload": {"seconds": 0.1}}
        return {
            "workflow": {
                "name": f"storm {number}",
                "tasks": [{"key": "first", **quick}, {"key": "last", **quick, "depends_on": ["first"]}],
            }
        }
    return {"task": probe}

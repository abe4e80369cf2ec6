"""What people are going to do to their endpoints, thrown by dice and known before the first."""

import random
from dataclasses import dataclass
from typing import Any

from tests.chaos.faults.plan import Pack

KINDS = (
    "edit", "edit", "disable", "disable", "enable", "enable", "replace", "rotate", "test", "redeliver", "revive",
    "revive", "cancel", "look",
)  # fmt: skip
"""`edit` changes what an endpoint subscribes to, or where it is; `replace` deletes one and makes another."""

ENDPOINTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("steady", {"events": ["task.*", "workflow.*", "project.*"]}),
    ("steady", {"events": ["task.completed", "task.dead"], "scope": "own"}),
    ("slow", {"events": ["task.*"], "filter": {"tag": "red"}}),
    ("dead", {"events": ["task.completed"], "filter": {"tag": "red"}}),
    ("moody", {"events": ["task.*"]}),
    ("moody", {"events": ["task.completed"], "filter": {"actor": "tell"}}),
    ("gone", {"events": ["task.dead", "task.cancelled", "task.completed"]}),
    ("slow", {"events": ["task.completed"], "filter": {"tag": "red"}}),
    ("steady", {"events": ["task.completed", "task.cancelled"]}),
    ("moody", {"events": ["task.retrying", "task.dead"]}),
)
TAG = "told"
"""Of all tasks that are submitted for the endpoints' sake: others have theirs in the same storm."""
UNTOUCHED = 4
"""So many of the first are left as they are by everybody."""
SUBSCRIPTIONS: tuple[list[str], ...] = (
    ["task.*"],
    ["task.completed"],
    ["task.dead", "task.cancelled"],
    ["project.*", "workflow.*"],
    [],
)


@dataclass(frozen=True)
class Deed:
    at: float
    """Seconds after the beginning."""
    kind: str
    dice: int
    """For what is only known when it is done: which endpoint, which delivery."""


def plan(dice: random.Random, *, deeds: int, seconds: float) -> list[Deed]:
    """In the order of their times; all kinds come before any comes again."""
    kinds = Pack(dice, KINDS)
    times = sorted(dice.uniform(0, seconds) for _ in range(deeds))
    return [Deed(at, kinds.deal(), dice.getrandbits(32)) for at in times]


def a_task(dice: random.Random, mark: str, named_url: str) -> dict[str, Any]:
    """Mostly of an actor that is told of; some die and are revived, and some silent ones name where they tell."""
    tags = [TAG, *(["red"] if dice.random() < 0.4 else [])]
    if dice.random() < 0.2:
        ending = {"outcome": "permanent", "fail_times": 1} if dice.random() < 0.3 else {}
        payload = {"seconds": 0.02, "result": mark, **ending}
        return {"actor": "probe", "payload": payload, "tags": tags, "webhook_url": named_url}
    deaths = dice.choice((0, 0, 0, 1, 1, 2))
    return {"actor": "tell", "payload": {"mark": mark, "deaths": deaths}, "tags": tags}

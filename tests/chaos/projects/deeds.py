"""What people are going to do to their projects, and what these have to run: thrown by dice, known before the first."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.chaos.faults.plan import Pack

KINDS = (
    "run", "run", "loop", "loop", "loop", "press", "edit", "reorder", "reorder", "stop", "stop", "force-stop",
    "force-stop", "requeue", "requeue", "revive", "revive", "skip", "bear", "bulk", "look",
)  # fmt: skip
"""`press` is a double click; `bear` gives the run that is open a child; `bulk` retries what has died, in bulk."""

WITHOUT_AGENTS = 0.6
LONG_SECONDS = 12.0
"""Longer than anybody waits for it: it is stopped, by force or by the one who waits for the end."""


@dataclass(frozen=True)
class Deed:
    at: float
    """Seconds after the beginning."""
    kind: str
    project: int
    dice: int
    """For what is only known when it is done: which item, which run."""


def plan(dice: random.Random, *, deeds: int, seconds: float, projects: int) -> list[Deed]:
    """In the order of their times; all kinds come, and every project has its turn, before any comes again."""
    kinds, whose = Pack(dice, KINDS), Pack(dice, range(projects))
    times = sorted(dice.uniform(0, seconds) for _ in range(deeds))
    return [Deed(at, kinds.deal(), whose.deal(), dice.getrandbits(32)) for at in times]


def backlog(dice: random.Random, items: int) -> list[dict[str, Any]]:
    return [an_item(dice, number) for number in range(items)]


def an_item(dice: random.Random, number: int) -> dict[str, Any]:
    title = f"item {number}"
    if dice.random() > WITHOUT_AGENTS:
        seconds = LONG_SECONDS if dice.random() < 0.25 else dice.uniform(0.2, 1.2)
        return {**an_agent(seconds), "title": title}
    payload: dict[str, Any] = {"seconds": round(dice.uniform(0.05, 0.8), 2), "result": title}
    ending = dice.random()
    if ending < 0.12:
        payload["outcome"] = "permanent"
    elif ending < 0.25:
        payload |= {"outcome": "transient", "error_type": "NetworkTimeout", "fail_times": 1}
    return {"actor": "probe", "payload": payload, "title": title}


def an_agent(seconds: float) -> dict[str, Any]:
    """It forks, one of its children leaves its session, and all of them ignore SIGTERM."""
    params = {"do": "sleep", "seconds": round(seconds, 2), "stubborn": True, "children": ["stubborn", "daemon"]}
    return {"actor": "agent", "payload": {"subagent_type": "unruly", "prompt": "Go on.", "params": params}}


def a_long_loop(items: int, seconds: float) -> Sequence[dict[str, Any]]:
    """Nobody touches it, and it comes to its end over everything that is done to the installation."""
    payload = {"seconds": round(seconds, 3)}
    return [
        {"actor": "probe", "payload": payload, "title": f"step {number}", "max_retries": 20} for number in range(items)
    ]

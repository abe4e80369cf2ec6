"""What a storm over the memory asks for: agents and summaries, of which some die, are cancelled and live again."""

import random
from typing import Any

from tests.chaos.load.wishes import Wish

AGENTS = 0.1
"""Of all; the others are summaries."""
PLACES = ("lamp", "harbour", "stair", "horn", "boat", "garden")


def plan(dice: random.Random, *, tasks: int, seconds: float) -> list[Wish]:
    """In the order of their times."""
    times = sorted(dice.uniform(0, seconds) for _ in range(tasks))
    run = f"{random.SystemRandom().randrange(16**6):06x}"
    return [_wish(dice, number, at, f"mark-{run}-{number:05d}") for number, at in enumerate(times)]


def _wish(dice: random.Random, number: int, at: float, mark: str) -> Wish:
    place = dice.choice(PLACES)
    body: dict[str, Any] = {"actor": "summarize", "tags": ["storm"]}
    wish = Wish(number, at, mark, body)
    if dice.random() < AGENTS:
        params: dict[str, Any] = {"seconds": round(dice.uniform(0.1, 0.4), 2), "steps": 1}
        if dice.random() < 0.25:
            params["fail"] = "permanent"
            wish.is_revived = dice.random() < 0.7
        prompt = f"{mark} look after the {place}"
        body |= {"actor": "agent", "payload": {"subagent_type": "demo", "prompt": prompt, "params": params}}
    else:
        body["payload"] = {"content": f"{mark} The keeper saw to the {place}, as on every evening of that winter."}
    if dice.random() < 0.05:
        wish.cancel_after = dice.choice((0.0, 0.2, 1.0))
        wish.is_revived = dice.random() < 0.7
    wish.is_repeated = dice.random() < 0.05
    return wish

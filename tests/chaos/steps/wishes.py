"""What a storm over steps asks for: walks of a few steps, of which some stumble, die, are cancelled and live again."""

import random
from typing import Any

from tests.chaos.load.wishes import Wish

SHARES = {"walk": 5, "march": 4, "hike": 1}
"""A process for each attempt costs a start of the interpreter."""
KEPT = {"max_retries": 20}


def plan(dice: random.Random, *, walks: int, seconds: float) -> list[Wish]:
    """In the order of their times."""
    times = sorted(dice.uniform(0, seconds) for _ in range(walks))
    run = f"{random.SystemRandom().randrange(16**6):06x}"
    return [_wish(dice, number, at, f"mark-{run}-step-{number:05d}") for number, at in enumerate(times)]


def _wish(dice: random.Random, number: int, at: float, mark: str) -> Wish:
    actor = dice.choices(list(SHARES), list(SHARES.values()))[0]
    payload: dict[str, Any] = {
        "mark": mark,
        "steps": dice.randint(2, 6),
        "seconds": round(dice.uniform(0.1, 1.2), 2),
        "stumbles": dice.choice((0, 0, 1, 2)),
        "deaths": dice.choice((0, 0, 0, 1)),
    }
    wish = Wish(number, at, mark, {"actor": actor, "provider": actor, "payload": payload, "tags": ["storm"], **KEPT})
    wish.is_revived = bool(payload["deaths"]) and dice.random() < 0.8
    wish.is_followed = dice.random() < 0.1
    wish.is_repeated = dice.random() < 0.1
    if dice.random() < 0.08:
        wish.cancel_after = dice.choice((0.0, 0.5, 2.0))
        wish.is_revived = dice.random() < 0.7
    return wish

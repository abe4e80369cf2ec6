"""What people are going to do to their workflows, thrown by dice and known before the first."""

import random
from dataclasses import dataclass

from tests.chaos.faults.plan import Pack

KINDS = (
    "decide", "decide", "decide", "decide", "resume", "resume", "resume", "cancel", "cancel-standing", "revive",
    "cancel-task", "join", "bulk", "look",
)  # fmt: skip
"""`resume` is of those that stand, in one of its modes; `cancel` of any, `cancel-standing` of an escalated one; two
people `decide` at the same time, and not always the same; `join` adds a task to one that is under way."""


@dataclass(frozen=True)
class Deed:
    at: float
    """Seconds after the beginning."""
    kind: str
    dice: int
    """For what is only known when it is done: which workflow, which task."""


def plan(dice: random.Random, *, deeds: int, seconds: float) -> list[Deed]:
    """In the order of their times; all kinds come before any comes again."""
    kinds = Pack(dice, KINDS)
    times = sorted(dice.uniform(0, seconds) for _ in range(deeds))
    return [Deed(at, kinds.deal(), dice.getrandbits(32)) for at in times]

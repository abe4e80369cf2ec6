"""The plan of a storm: which fault comes when, to whom and for how long; a pure function of the seed."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tests.chaos.faults.cut_ends import AFTER, BEFORE, LATE, WITHIN

Card = TypeVar("Card")

CALM_SECONDS = 2.0
"""Before the first fault, so that there is work to be disturbed."""


@dataclass(frozen=True)
class Kind:
    """One way to do harm: how long it lasts, and a number that some need (a delay, a limit)."""

    name: str
    seconds: tuple[float, float] = (0.0, 0.0)
    amounts: tuple[float, ...] = ()
    weight: int = 1
    """How often it comes while the others come once."""


PROCESSES = (
    Kind("kill", (0.2, 3)),
    Kind("freeze", (1, 6)),
    Kind("restart", (0.1, 1)),
)
ORCHESTRATORS = (
    *PROCESSES,
    Kind("kill in a batch", (0.2, 3)),
    Kind("freeze in a batch", (1, 6)),
)
ACTORS = (
    Kind("kill worker"),
    Kind("freeze worker", (1, 7)),
    Kind("kill guardian", (0.2, 3)),
    Kind("freeze guardian", (1, 6)),
    Kind("kill host", (0.2, 3)),
    Kind("freeze host", (1, 8)),
    Kind("restart actors", (0.1, 1)),
)
AGENTS = (Kind("kill agent"), Kind("freeze agent", (0.5, 3)))
POSTGRES = (Kind("kill postgres", (0.1, 4)), Kind("kill postgres whole", (0.1, 4)), Kind("freeze postgres", (1, 5)))
BROKER = (Kind("kill rabbitmq", (0.1, 4)), Kind("freeze rabbitmq", (1, 8)))
LINKS = (
    Kind("cut", (0.5, 6), weight=3),
    Kind("reset", weight=3),
    Kind("delay", (2, 8), (0.05, 0.1, 0.3), weight=3),
    Kind("black-hole", (1, 9), weight=3),
)
ENDS = tuple(Kind(each) for each in (BEFORE, WITHIN, AFTER, LATE))
DOORBELLS = (Kind("ring for everything"), Kind("purge queues"))
EVERYTHING = (Kind("kill everything", (0.5, 2)),)
EVERYTHING_AT_ONCE = ("everything",)
AWAY = "stay away"
AWAY_SECONDS = 60.0
LIMITS = (Kind("limit", amounts=(1, 2, 3, 4, 6), weight=2),)


@dataclass(frozen=True)
class Place:
    """The ways in which some targets can be harmed."""

    kinds: tuple[Kind, ...]
    targets: tuple[str, ...]


@dataclass(frozen=True)
class Planned:
    at: float
    """Seconds after the beginning."""
    kind: str
    target: str
    seconds: float
    amount: float = 0.0

    @property
    def words(self) -> str:
        amount = f" {self.amount:g}" if self.amount else ""
        lasting = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.kind}{amount}: {self.target}{lasting}"


class Pack(Generic[Card]):
    """Cards that are shuffled, dealt one by one, and shuffled anew when all have come: dice that forget nobody."""

    def __init__(self, dice: random.Random, cards: Sequence[Card]) -> None:
        self._dice = dice
        self._cards = cards
        self._left: list[Card] = []

    def deal(self) -> Card:
        if not self._left:
            self._left = list(self._cards)
            self._dice.shuffle(self._left)
        return self._left.pop()


def schedule(seed: int, seconds: float, faults: int, places: Sequence[Place]) -> list[Planned]:
    """The same for the same arguments. All kinds come, as often as they weigh, before any comes more often."""
    dice = random.Random(f"faults {seed}")
    kinds = Pack(dice, [(kind, place) for place in places for kind in place.kinds for _ in range(kind.weight)])
    targets = {place: Pack(dice, place.targets) for place in places}
    each = (seconds - CALM_SECONDS) / faults
    plan = []
    for number in range(faults):
        kind, place = kinds.deal()
        at = CALM_SECONDS + each * (number + dice.random())
        amount = dice.choice(kind.amounts) if kind.amounts else 0.0
        plan.append(Planned(at, kind.name, targets[place].deal(), dice.uniform(*kind.seconds), amount))
    return plan


def absence(seed: int, seconds: float, kind: str) -> Planned:
    """In the first half of the storm, all processes of a kind are away for a minute, while everything else runs."""
    dice = random.Random(f"absence {seed}")
    return Planned(dice.uniform(CALM_SECONDS, seconds / 2), AWAY, kind, AWAY_SECONDS)

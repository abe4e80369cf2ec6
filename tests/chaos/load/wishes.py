"""What the storm's clients are going to ask for: a mixed load, thrown by dice, known before the first request."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

SHARES = {"probe": 78, "leonardo": 6, "midjourney": 2, "summarize": 8, "agent": 6}
"""Of a hundred tasks. Midjourney makes one picture at a time, and an agent is a process."""

LARGEST_BATCH = 25
FOLLOWED = 1 / 8
CARELESS = 0.05
"""They send no key and ask once: if the answer is lost they never hear of their task."""

HARM_PER_TASK = 0.002
"""Probes that crash or hang take a worker and all that it runs with them."""


@dataclass
class Wish:
    """One task to be, and what its client does besides."""

    number: int
    at: float
    """Seconds after the beginning."""
    mark: str
    body: dict[str, Any]
    parents: tuple[int, ...] = ()
    batch: int | None = None
    is_careless: bool = False
    is_repeated: bool = False
    """Its client asks once more after it was answered, with the same key, and expects the same task."""
    is_followed: bool = False
    cancel_after: float | None = None
    is_revived: bool = False
    """If it dies or is cancelled, its client wants it to live once more."""


@dataclass
class Kinds:
    """Which providers there are for probes."""

    probe_providers: Sequence[str] = field(default=("probe",))


def plan(dice: random.Random, *, tasks: int, seconds: float, kinds: Kinds) -> list[Wish]:
    """In the order of their times; parents come before their children."""
    times = sorted(dice.uniform(0, seconds) for _ in range(tasks))
    # No other run's order may be taken for one of this run's, so the marks are not thrown by these dice.
    run = f"{random.SystemRandom().randrange(16**6):06x}"
    wishes = [_wish(dice, number, at, f"mark-{run}-{number:05d}", kinds) for number, at in enumerate(times)]
    _harm(dice, wishes, kinds)
    _relate(dice, wishes)
    _gather(dice, wishes)
    return wishes


def _wish(dice: random.Random, number: int, at: float, mark: str, kinds: Kinds) -> Wish:
    kind = dice.choices(list(SHARES), list(SHARES.values()))[0]
    wish = Wish(number, at, mark, {"actor": kind, "priority": dice.choice((0, 1, 2, 2, 2, 3, 7)), "tags": ["storm"]})
    if kind == "probe":
        _probe(dice, wish, kinds)
    elif kind == "summarize":
        _summarize(dice, wish)
    elif kind == "agent":
        _agent(dice, wish)
    else:
        _media(dice, wish, kind)
    wish.is_followed = dice.random() < FOLLOWED
    wish.is_careless = not wish.is_followed and dice.random() < CARELESS
    wish.is_repeated = not wish.is_careless and dice.random() < 0.1
    if wish.cancel_after is None and dice.random() < 0.06:
        wish.cancel_after = dice.choice((0.0, 0.1, 0.5, 2.0))
        wish.is_revived = dice.random() < 0.3
    return wish


def _probe(dice: random.Random, wish: Wish, kinds: Kinds) -> None:
    throw = dice.random()
    seconds = dice.uniform(1, 3) if throw < 0.04 else dice.uniform(0.1, 0.6) if throw < 0.3 else 0.02
    payload: dict[str, Any] = {"seconds": round(seconds, 3), "result": wish.mark}
    if dice.random() < 0.4:
        payload["steps"] = dice.randint(1, 4)
    ending = dice.random()
    if ending < 0.04:
        payload |= {"outcome": "transient", "error_type": "NetworkTimeout", "fail_times": 1}
    elif ending < 0.06:
        payload |= {"outcome": "transient", "error_type": "NetworkTimeout"}
        wish.body["max_retries"] = dice.randint(0, 1)
    elif ending < 0.10:
        payload |= {"outcome": "permanent", "fail_times": 1}
        wish.is_revived = dice.random() < 0.6
    elif ending < 0.12:
        payload |= {"outcome": "permanent"}
        wish.is_revived = dice.random() < 0.3
    wish.body |= {"provider": dice.choice(list(kinds.probe_providers)), "payload": payload}


def _media(dice: random.Random, wish: Wish, provider: str) -> None:
    # By the clock: a job that ends when it is asked about would never end where nobody can know its name.
    words = ["[[seconds=0.4]]", "[[seconds=0.8]]", "[[seconds=0.8]]", "[[seconds=2.5]]"]
    prompt = f"{wish.mark} a lighthouse in a storm {dice.choice(words)}"
    throw = dice.random()
    if throw < 0.06:
        prompt += dice.choice((" [[fail x1]]", " [[fail-moderated]]"))
        wish.body["max_retries"] = 1
    elif throw < 0.12:
        prompt += " [[429=1 x1]]"
    elif throw < 0.17:
        prompt += " [[delay=0.7]]"
    elif throw < 0.22:
        prompt += " [[poll:503 x2]]"
    elif throw < 0.26:
        prompt += " [[callback-twice]]"
    elif throw < 0.30:
        prompt += " [[drop-after x1]]"
    if provider == "leonardo":
        payload: dict[str, Any] = {"action": "txt2img", "prompt": prompt, "params": {"num_images": 1}}
    else:
        payload = {"action": "txt2img", "prompt": prompt}
    wish.body |= {"actor": "media", "provider": provider, "payload": payload}
    if dice.random() < 0.12:
        wish.cancel_after = dice.choice((0.0, 0.6, 1.5))
        wish.is_revived = dice.random() < 0.3


def _summarize(dice: random.Random, wish: Wish) -> None:
    """The mark stands every few words, so that each part of a long text has it."""
    sentence = f" {wish.mark} The keeper lit the lamp and wrote down the wind, as on every evening of that winter."
    content = sentence * (dice.randint(300, 420) if dice.random() < 0.1 else dice.randint(1, 4))
    throw = dice.random()
    if throw < 0.05:
        content += " [[429=1 x1]]"
    elif throw < 0.10:
        content += " [[drop-stream=3 x1]]"
    elif throw < 0.3:
        content += " [[pace=0.15]]"
    wish.body |= {"payload": {"content": content.strip()}}


def _agent(dice: random.Random, wish: Wish) -> None:
    params: dict[str, Any] = {"seconds": round(dice.uniform(0.2, 1.2), 2), "steps": dice.randint(1, 3)}
    if dice.random() < 0.15:
        params = {"seconds": 20, "steps": 40}
        wish.cancel_after = dice.uniform(0.5, 4)
    elif dice.random() < 0.1:
        params["fail"] = "permanent"
        wish.is_revived = dice.random() < 0.3
    wish.body |= {"payload": {"subagent_type": "demo", "prompt": f"{wish.mark} look after the lamp", "params": params}}


def _harm(dice: random.Random, wishes: list[Wish], kinds: Kinds) -> None:
    """Few, but at least one of each where there are enough tasks to notice."""
    number = max(1, round(len(wishes) * HARM_PER_TASK)) if len(wishes) >= 50 else 0
    probes = [wish for wish in wishes if wish.body["actor"] == "probe" and wish.cancel_after is None]
    for outcome, wish in zip(
        ["crash", "hang"] * number, dice.sample(probes, min(len(probes), 2 * number)), strict=False
    ):
        wish.body |= {"provider": kinds.probe_providers[0], "max_retries": 0}
        wish.body["payload"] = {"outcome": outcome, "result": wish.mark, "seconds": 0.05}
        wish.is_revived = False
        if outcome == "hang":
            wish.body["timeout_seconds"] = 1.5


def _relate(dice: random.Random, wishes: list[Wish]) -> None:
    """One in ten waits for one to three of those shortly before it, also for chains and for parents that fail."""
    for wish in wishes[1:]:
        if dice.random() < 0.1:
            near = range(max(0, wish.number - 12), wish.number)
            wish.parents = tuple(sorted(dice.sample(near, min(len(near), dice.randint(1, 3)))))


def _gather(dice: random.Random, wishes: list[Wish]) -> None:
    """Neighbours that wait for nobody become a batch now and then; it is sent at the first one's time."""
    batch = 0
    position = 0
    while position < len(wishes):
        if dice.random() < 0.03:
            batch += 1
            members = [
                wish
                for wish in wishes[position : position + dice.randint(2, LARGEST_BATCH)]
                if not wish.parents and not wish.is_careless
            ]
            for wish in members:
                wish.batch, wish.at = batch, members[0].at
            position += LARGEST_BATCH
        position += 1

"""The last storms: what `make chaos` keeps of each scene, the newest only, and the rows of `proof.md` about them."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from docs.figures import PLACE, table

KEPT = PLACE / "storms.json"
FAILPOINTS = "failpoints"
"""No storm: lists of places, at each of which somebody is killed."""


@dataclass(frozen=True)
class Storm:
    """`faults` are places where somebody was killed or held, with the failpoints; `broken` is how often a promise was
    broken, `uncaught` how many threads or processes an error has ended, `missing` what nothing is proven of,
    `surprises` how often a client was answered as nobody should be."""

    scene: str
    faults: int
    broken: int
    date: str
    commit: str
    seed: int | None = None
    minutes: float | None = None
    sizes: str = ""
    """What else was chosen, as it was said."""
    tasks: int | None = None
    kinds: int | None = None
    matter: Mapping[str, int] = field(default_factory=dict)
    uncaught: int = 0
    missing: list[str] = field(default_factory=list)
    surprises: int = 0


Storms = Mapping[str, Storm]


def load(file: Path = KEPT) -> Storms:
    return {each["scene"]: Storm(**each) for each in json.loads(file.read_text())} if file.exists() else {}


def keep(storm: Storm, file: Path = KEPT) -> None:
    """In place of the older one of its scene, whatever came of it."""
    storms = {**load(file), storm.scene: storm}
    file.write_text(json.dumps([asdict(storms[scene]) for scene in sorted(storms)], indent=1) + "\n")


def drawn(storms: Storms) -> list[str]:
    if not storms:
        return ["None is kept."]
    return table(("storm", "tasks", "faults", "promises broken", "when"), [_row(each) for each in storms.values()])


def _row(storm: Storm) -> tuple[str, ...]:
    tasks = "" if storm.tasks is None else f"{storm.tasks:,}"
    return _words(storm), tasks, _faults(storm), _broken(storm), f"{storm.date} at {storm.commit or 'no kept commit'}"


def _words(storm: Storm) -> str:
    if storm.scene == FAILPOINTS:
        return f"`SCENE={FAILPOINTS} make chaos`"
    said = (f"SCENE={storm.scene} SEED={storm.seed} MINUTES={storm.minutes:g}", storm.sizes, "make chaos")
    command = f"`{' '.join(filter(None, said))}`"
    there = ", ".join(f"{number:,} {name}" for name, number in storm.matter.items() if number and name != "tasks")
    return f"{command}: {there}" if there else command


def _faults(storm: Storm) -> str:
    if storm.scene == FAILPOINTS:
        return f"{storm.faults} places"
    return f"{storm.faults}, of {storm.kinds} kinds" if storm.kinds else str(storm.faults)


def _broken(storm: Storm) -> str:
    found = [
        f"**{storm.broken} times**" if storm.broken else "none",
        f"**errors that nobody caught: {storm.uncaught}**" if storm.uncaught else "",
        f"**there were no {', '.join(storm.missing)}**" if storm.missing else "",
        f"**clients were surprised: {storm.surprises}**" if storm.surprises else "",
    ]
    return "; ".join(filter(None, found))

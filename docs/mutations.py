"""What `make mutations` has found: kept beside the figures, a run of a few in place of the older results of those, and
drawn into `proof.md`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from docs.figures import PLACE, table
from tests.chaos.breaking.catalogue import MUTATIONS
from tests.chaos.breaking.changes import Mutation
from tests.chaos.breaking.small_changes import small_mutations

KEPT = PLACE / "mutations.json"
CONTROL = "control"
"""The engine as it is, of which the judge has to find nothing."""
NO_RESULT = "no result is kept"

PROMISES = (
    "finished",
    "finished once",
    "never more than allowed",
    "paid once",
    "gives back",
    "nothing missed",
    "nothing outlives its task",
    "one run at a time",
    "stays stopped",
    "an item is run once",
    "says what is so",
    "nothing starts",
    "never run again",
    "once, and in order",
    "decides once",
    "what its tasks say",
    "told",
    "ours, unchanged",
    "has its row",
    "starts once",
    "remembered",
    "steps not run again",
)
"""In the order of the judge's criteria, as short as a cell."""


@dataclass(frozen=True)
class Result:
    """`findings` counts what the judge has said, by the number of the criterion; of a small one a test says it."""

    noticed: bool
    seconds: float
    date: str
    commit: str
    findings: Mapping[str, int] = field(default_factory=dict)


Results = Mapping[str, Result]


def names() -> list[str]:
    return [CONTROL, *(each.name for each in MUTATIONS), *(each.name for each in small_mutations())]


def load(file: Path = KEPT) -> Results:
    return {name: Result(**each) for name, each in json.loads(file.read_text()).items()} if file.exists() else {}


def merged(old: Results, new: Results, order: Sequence[str]) -> Results:
    """What was not tried anew stays; what the catalogue has no more is gone."""
    both = {**old, **new}
    return {name: both[name] for name in order if name in both}


def keep(name: str, result: Result, file: Path = KEPT) -> None:
    """At once, so that a run that is stopped has not been for nothing."""
    results = merged(load(file), {name: result}, names())
    file.write_text(json.dumps({name: asdict(each) for name, each in results.items()}, indent=1) + "\n")


def drawn(results: Results) -> list[str]:
    head = ("what is broken", "promise", "findings of the judge", "seconds", "tried")
    rows = [("nothing", "", *_of_the_control(results.get(CONTROL)))]
    rows += [(each.words, _promise(each.criterion), *_of_a_storm(each, results.get(each.name))) for each in MUTATIONS]
    small_head = ("what is broken", "the test that has to fail", "", "seconds", "tried")
    small = [(each.words, _test(each.test), *_of_a_test(results.get(each.name))) for each in small_mutations()]
    return [
        *table(head, rows),
        "",
        "Those that a storm would notice by luck alone are tried against one test each:",
        "",
        *table(small_head, small),
    ]


def _of_the_control(result: Result | None) -> tuple[str, str, str]:
    if result is None:
        return NO_RESULT, "", ""
    said = f"**{_others(result.findings)}**, without a cause" if result.findings else "none"
    return said, *_when(result)


def _of_a_storm(mutation: Mutation, result: Result | None) -> tuple[str, str, str]:
    if result is None:
        return NO_RESULT, "", ""
    expected = str(mutation.criterion)
    others = _others({number: count for number, count in result.findings.items() if number != expected})
    said = str(result.findings.get(expected, 0)) if result.noticed else "**not noticed**"
    return f"{said}, and {others}" if others else said, *_when(result)


def _of_a_test(result: Result | None) -> tuple[str, str, str]:
    if result is None:
        return NO_RESULT, "", ""
    return "noticed" if result.noticed else "**not noticed**", *_when(result)


def _others(findings: Mapping[str, int]) -> str:
    return ", ".join(f"{count} of “{_promise(int(number))}”" for number, count in findings.items())


def _promise(criterion: int) -> str:
    return PROMISES[criterion - 1]


def _when(result: Result) -> tuple[str, str]:
    return f"{result.seconds:.0f}", f"{result.date} at {result.commit or 'no commit'}"


def _test(test: str) -> str:
    """By its name alone; where all of a file have to fail together, by the file."""
    file, _, name = test.partition("::")
    return f"`{name or Path(file).name}`"

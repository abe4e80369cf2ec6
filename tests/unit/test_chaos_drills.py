"""What is said of a piece of work that is killed at one place after the other."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.chaos.drills import play_each


@dataclass(frozen=True)
class Place:
    name: str


class Drill:
    """At `late` somebody comes too late at first; `silent` breaks something, without a word."""

    def __init__(self) -> None:
        self.tried: list[str] = []

    def run(self, failpoint: Place) -> bool:
        self.tried.append(failpoint.name)
        if failpoint.name == "silent":
            raise AssertionError
        return failpoint.name != "late" or self.tried.count("late") > 1


def test_each_place_is_tried_until_somebody_was_killed_there_and_what_broke_is_said() -> None:
    drill, said = Drill(), list[str]()

    @contextmanager
    def a_drill() -> Iterator[Drill]:
        yield drill

    well = play_each([Place("late")], a_drill, said.append, what="a walk", went_well="walked")
    assert (well, drill.tried) == (True, ["late", "late"])
    assert said[0] == "a walk, killed with -9 at each of 1 places:"
    assert said[-1].endswith("late: walked")
    assert not play_each([Place("silent"), Place("late")], a_drill, said.append, what="a walk", went_well="walked")
    (broken,) = [line for line in said if "BROKEN" in line]
    assert "Traceback" in broken, "an error without words is told by where it was raised"
    assert said[-1].endswith("late: walked"), "the others are tried all the same"

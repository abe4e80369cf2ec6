"""A piece of work, once for each place of a list at which somebody is killed in the middle of it."""

import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar


class Named(Protocol):
    @property
    def name(self) -> str: ...


Place = TypeVar("Place", bound=Named)
Tried_contra = TypeVar("Tried_contra", bound=Named, contravariant=True)


class Drill(Protocol[Tried_contra]):
    def run(self, failpoint: Tried_contra, /) -> bool:
        """Whether somebody was killed there in time; it raises where that broke something."""
        ...


def play_each(
    everywhere: Sequence[Place],
    a_drill: Callable[[], AbstractContextManager[Drill[Place]]],
    say: Callable[[str], None],
    *,
    what: str,
    went_well: str,
) -> bool:
    """Whether every one of them went well."""
    say(f"{what}, killed with -9 at each of {len(everywhere)} places:")
    for failpoint in everywhere:
        say(f"  {failpoint.name}")
    went_wrong = 0
    with a_drill() as drill:
        for failpoint in everywhere:
            began = time.monotonic()
            try:
                while not drill.run(failpoint):
                    say(f"{failpoint.name}: the machine was too busy to kill in time; once more")
                said = went_well
            except AssertionError as error:
                went_wrong += 1
                said = f"BROKEN: {str(error) or traceback.format_exc()}"
            say(f"{time.monotonic() - began:5.1f} s  {failpoint.name}: {said}")
    return not went_wrong

"""Waiting for what a test expects, for no longer than it takes."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(what: str, condition: Callable[[], T | None], *, seconds: float = 60, every: float = 0.02) -> T:
    """The first true value that the condition gives; fails, saying what was awaited, when the time is over."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what}: still {value!r} after {seconds:g} s"
        time.sleep(every)
    return value

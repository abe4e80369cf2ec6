"""Waiting for what a test expects, for no longer than it takes."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(condition: Callable[[], T | None], seconds: float = 20, *, every: float = 0.05) -> T:
    """The first true value that the condition gives; fails when the time is over."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"still {value!r} after {seconds:g} s"
        time.sleep(every)
    return value

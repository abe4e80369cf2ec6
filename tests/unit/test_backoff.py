"""The pauses between tries and between restarts."""

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from windlass.shared.backoff import Backoff

ROOT = Path(__file__).parents[2]


def restarts() -> Backoff:
    return Backoff(first_seconds=0.2, longest_seconds=10, good_run_seconds=30)


def test_pauses_double_up_to_the_longest() -> None:
    backoff = restarts()
    assert [backoff.after(1) for _ in range(8)] == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10]


def test_a_good_run_begins_anew() -> None:
    backoff = restarts()
    assert [backoff.after(seconds) for seconds in (0, 0, 29, 30, 0)] == [0.2, 0.4, 0.8, 0.2, 0.4]


def test_a_success_begins_anew() -> None:
    backoff = Backoff(first_seconds=0.1, longest_seconds=2)
    assert [backoff.pause(), backoff.pause()] == [0.1, 0.2]
    backoff.renew()
    assert backoff.pause() == 0.1


@given(st.floats(0.001, 10), st.floats(1, 1000), st.integers(1, 50))
def test_it_never_pauses_longer_than_the_longest_nor_less_than_before(first: float, times: float, tries: int) -> None:
    backoff = Backoff(first_seconds=first, longest_seconds=first * times)
    pauses = [backoff.pause() for _ in range(tries)]
    assert pauses == sorted(pauses)
    assert pauses[0] == first
    assert pauses[-1] <= first * times


def test_nobody_doubles_a_pause_by_hand() -> None:
    """But for the client, which stands alone."""
    doubling = re.compile(r"min\(\w*pause \* 2|min\(2 \* \w|pause \*= 2")
    modules = [each for room in ("services", "shared") for each in (ROOT / room).rglob("*.py")]
    assert [each.name for each in modules if doubling.search(each.read_text())] == ["backoff.py"]

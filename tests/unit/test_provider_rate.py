"""A provider's rate as a function of the times at which calls ask for a place."""

from dramatiq.rate_limits.backends import StubBackend
from hypothesis import given, settings
from hypothesis import strategies as st

from windlass.services.actors.worker.rate_backend import SLICES, ProviderRate

RATES = st.tuples(st.integers(1, 3), st.integers(30, 3600))
EAGER = st.binary(min_size=60, max_size=80).map(lambda dice: [die % 9 / (4 * SLICES) for die in dice])
"""The times between those who ask, a slice on average: somebody always asks soon after a place is free."""
DELAYS = st.binary(min_size=80, max_size=80).map(lambda dice: [die % 2 * 0.99 for die in dice])

by_the_hundred = settings(max_examples=150, derandomize=True, deadline=None)


def granted(limit: int, per_seconds: int, times: list[float]) -> list[bool]:
    """Whether each of those who ask at these times, in windows since some moment, gets a place."""
    now = 0.0
    backend = StubBackend()  # type: ignore[no-untyped-call]
    rate = ProviderRate(backend, "probe", limit=limit, per_seconds=per_seconds, clock=lambda: now * per_seconds)
    answers = []
    for at in times:
        now = 1000 + at
        with rate.acquire(raise_on_failure=False) as place:
            answers.append(bool(place))
    return answers


def times_of(gaps: list[float]) -> list[float]:
    return [sum(gaps[: place + 1]) for place in range(len(gaps))]


@by_the_hundred
@given(RATES, EAGER, DELAYS)
def test_no_window_sees_more_calls_than_the_limit_though_each_comes_up_to_a_slice_late(
    rate: tuple[int, int], gaps: list[float], delays: list[float]
) -> None:
    times = times_of(gaps)
    answers = granted(*rate, times)
    seen = [at + late / SLICES for at, late, place in zip(times, delays, answers, strict=False) if place]
    for begin in seen:
        assert sum(begin <= at < begin + 1 for at in seen) <= rate[0]


@by_the_hundred
@given(RATES, EAGER)
def test_a_place_is_refused_only_while_as_many_were_taken_in_a_window_and_two_slices(
    rate: tuple[int, int], gaps: list[float]
) -> None:
    times = times_of(gaps)
    answers = granted(*rate, times)
    taken: list[float] = []
    for at, place in zip(times, answers, strict=True):
        recent = sum(before > at - 1 - 2.01 / SLICES for before in taken)
        assert place or recent >= rate[0]
        if place:
            taken.append(at)

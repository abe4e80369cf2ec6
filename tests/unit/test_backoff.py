"""The pauses between restarts."""

from windlass.services.laptop.supervision.backoff import Backoff


def test_pauses_double_up_to_ten_seconds() -> None:
    backoff = Backoff()
    assert [backoff.after(1) for _ in range(8)] == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10]


def test_a_good_run_begins_anew() -> None:
    backoff = Backoff()
    assert [backoff.after(seconds) for seconds in (0, 0, 29, 30, 0)] == [0.2, 0.4, 0.8, 0.2, 0.4]

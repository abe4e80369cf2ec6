"""What the guardian is told: the earliest moment at which this process may hold a lease that nobody renews."""

import math
import os
from collections.abc import Iterator

import pytest

from services.actors.lease_watch import LeaseWatch
from shared.settings import Settings

SETTINGS = Settings(stop_grace_seconds=5, lease_margin_seconds=2)


class Guardian:
    """The other end of the pipe."""

    def __init__(self) -> None:
        self._ours, theirs = os.pipe()
        self._theirs = theirs
        os.set_blocking(self._ours, False)
        self.watch = LeaseWatch(SETTINGS, theirs, guardian_gone=lambda: None)

    def heard(self) -> list[float]:
        try:
            return [float(line) for line in os.read(self._ours, 4096).split()]
        except BlockingIOError:
            return []

    def close(self) -> None:
        os.close(self._ours)
        os.close(self._theirs)


@pytest.fixture
def guardian() -> Iterator[Guardian]:
    guardian = Guardian()
    yield guardian
    guardian.close()


def test_the_first_claim_binds_before_any_renewal(guardian: Guardian) -> None:
    guardian.watch.claimed(100)
    assert guardian.heard() == [93]


def test_a_later_claim_extends_nothing(guardian: Guardian) -> None:
    guardian.watch.claimed(100)
    guardian.watch.claimed(130)
    assert guardian.heard() == [93]


def test_a_renewal_extends(guardian: Guardian) -> None:
    guardian.watch.claimed(100)
    guardian.watch.renewed(130)
    assert guardian.heard() == [93, 123]


def test_where_nothing_runs_there_is_no_deadline_until_the_next_claim(guardian: Guardian) -> None:
    guardian.watch.nothing_runs()
    guardian.watch.nothing_runs()
    guardian.watch.claimed(100)
    assert guardian.heard() == [math.inf, 93]

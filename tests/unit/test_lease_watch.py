"""What the guardian is told: the earliest moment at which this process may hold a lease that nobody renews."""

import math
import os
from collections.abc import Iterator
from uuid import uuid4

import pytest

from windlass.services.actors.worker.leases.lease_watch import LeaseWatch
from windlass.shared.settings import Settings

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


ONE, ANOTHER = uuid4(), uuid4()


def test_the_first_claim_binds_before_any_renewal(guardian: Guardian) -> None:
    guardian.watch.claimed([ONE], 100)
    assert guardian.heard() == [93]


def test_a_later_claim_extends_nothing(guardian: Guardian) -> None:
    guardian.watch.claimed([ONE], 100)
    guardian.watch.claimed([ANOTHER], 130)
    assert guardian.heard() == [93]


def test_a_claim_that_was_answered_after_a_later_renewal_binds_all_the_same(guardian: Guardian) -> None:
    guardian.watch.renewed([], 130)
    guardian.watch.claimed([ONE], 100)
    assert guardian.heard() == [123, 93]


def test_a_renewal_extends(guardian: Guardian) -> None:
    guardian.watch.claimed([ONE, ANOTHER], 100)
    guardian.watch.renewed([ONE, ANOTHER], 130)
    assert guardian.heard() == [93, 123]


def test_a_lease_that_a_renewal_has_skipped_binds_until_nothing_works_under_it(guardian: Guardian) -> None:
    guardian.watch.claimed([ONE, ANOTHER], 100)
    guardian.watch.renewed([ONE], 130)
    guardian.watch.renewed([ONE], 135)
    assert guardian.heard() == [93, 93, 93]
    guardian.watch.let_go(ANOTHER)
    assert guardian.heard() == [128]


def test_the_skipped_are_told_from_the_others_when_their_time_comes(guardian: Guardian) -> None:
    guardian.watch.claimed([ONE, ANOTHER], 100)
    assert guardian.watch.left_behind(99) == []
    guardian.watch.renewed([ONE], 130)
    assert guardian.watch.left_behind(99) == []
    assert guardian.watch.left_behind(101) == [ANOTHER]
    assert guardian.watch.left_behind(200) == [ANOTHER], "the others share the fate of the last renewal"
    guardian.watch.renewed([ONE, ANOTHER], 135)
    assert guardian.watch.left_behind(134) == []


def test_an_attempt_that_ends_in_time_is_no_news(guardian: Guardian) -> None:
    guardian.watch.claimed([ONE], 100)
    guardian.watch.renewed([ONE], 130)
    guardian.watch.claimed([ANOTHER], 131)
    guardian.heard()
    guardian.watch.let_go(ONE)
    guardian.watch.let_go(ANOTHER)
    assert guardian.heard() == []


def test_a_renewal_gives_no_lease_to_who_has_let_it_go(guardian: Guardian) -> None:
    guardian.watch.claimed([ONE], 100)
    guardian.watch.let_go(ONE)
    guardian.watch.renewed([ONE], 130)
    guardian.watch.renewed([], 140)
    assert guardian.heard()[-1] == 133


def test_where_nothing_runs_there_is_no_deadline_until_the_next_claim(guardian: Guardian) -> None:
    guardian.watch.nothing_runs()
    guardian.watch.nothing_runs()
    guardian.watch.claimed([ONE], 100)
    assert guardian.heard() == [math.inf, 93]


def test_a_claim_that_was_just_answered_is_not_forgotten_where_nothing_runs_yet(guardian: Guardian) -> None:
    guardian.watch.claimed([ONE], 100)
    guardian.watch.nothing_runs()
    assert guardian.heard() == [93]

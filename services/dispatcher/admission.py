"""How many tasks of each lane may start now: a pure function of what the rows say about a provider."""

from dataclasses import dataclass

from shared.store.providers import ProviderView

WINDOW_FLOOR = 16
"""Doorbells that may be out for a queue that nobody serves now: a pool scaled to zero must see that it is wanted."""

WINDOW_PER_CAPACITY = 2
"""Doorbells out per worker thread: one that runs, one that is ready when it is done."""


@dataclass(frozen=True)
class Admission:
    """So many of each lane, and the lanes' credit after they have gone."""

    fresh: int
    retry: int
    credit: int


def retry_share(waiting_retries: int) -> int:
    """Percent of the starts that go to the retry lane while both lanes have work."""
    if waiting_retries < 1000:
        return 30
    return 20 if waiting_retries <= 5000 else 10


def free_places(view: ProviderView) -> int:
    window = max(WINDOW_FLOOR, WINDOW_PER_CAPACITY * view.capacity)
    ceiling = window if view.limit is None else min(view.limit, window)
    return max(0, ceiling - view.held - view.rung)


def admit(view: ProviderView) -> Admission:
    """Shares the free places between the lanes.

    Each pick adds the retry lane's share to the credit; at 100 the pick is a retry's and costs 100. The credit is kept
    between calls, so that the ratio holds also when one task at a time may start. A lane that has nothing due gives
    its share away and earns no credit meanwhile.
    """
    fresh = retry = 0
    credit = view.lane_credit
    share = retry_share(view.retry_due)
    for _ in range(free_places(view)):
        fresh_left, retry_left = view.fresh_due - fresh, view.retry_due - retry
        if fresh_left > 0 and retry_left > 0:
            credit += share
            if credit >= 100:
                credit -= 100
                retry += 1
            else:
                fresh += 1
        elif fresh_left > 0:
            fresh += 1
        elif retry_left > 0:
            retry += 1
        else:
            break
    return Admission(fresh, retry, credit)

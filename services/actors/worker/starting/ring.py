"""The queues that may have something to start, in a ring: free places are dealt out to them in turn."""

from collections import OrderedDict
from collections.abc import Callable, Mapping

MOST_AT_FIRST = 256
"""A place costs a token in the call, whether it is filled or not."""


class Ring:
    """By queue, how many tasks to ask for next. A doorbell says how many, and each call that was given as many and told
    of more doubles it. The queue of a task that just ended has no advantage, or one that never runs dry would keep all
    places."""

    def __init__(self) -> None:
        self._numbers: OrderedDict[str, int] = OrderedDict()

    def add(self, queue: str, number: int) -> None:
        self._numbers[queue] = min(max(number, self._numbers.get(queue, 1)), MOST_AT_FIRST)

    def drop(self, queue: str) -> None:
        self._numbers.pop(queue, None)

    def share(self, places: int, most_of: Callable[[str, int], int]) -> Mapping[str, int]:
        """Deals the places out evenly, and begins with the next queue the next time. `most_of` is told a queue and its
        number, and says how many are enough."""
        shares: dict[str, int] = {}
        most = {queue: most_of(queue, number) for queue, number in self._numbers.items()}
        while places > 0:
            want_more = [queue for queue in self._numbers if shares.get(queue, 0) < most[queue]]
            if not want_more:
                break
            each = max(1, places // len(want_more))
            for queue in want_more[:places]:
                number = min(each, most[queue] - shares.get(queue, 0))
                shares[queue] = shares.get(queue, 0) + number
                places -= number
                self._numbers.move_to_end(queue)
        return shares

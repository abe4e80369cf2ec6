"""The queues for which this process holds credit, in a ring: each free place asks for the next of them."""

from collections import OrderedDict
from collections.abc import Callable, Mapping


class Ring:
    """How many starts it may ask for in each queue. The queue that just ended something has no privilege: else one that
    never runs dry would keep all places for itself."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._credit: OrderedDict[str, int] = OrderedDict()

    def add(self, queue: str, starts: int) -> None:
        if starts > 0:
            self._credit[queue] = min(self._credit.get(queue, 0) + starts, self._most)

    def take_back(self, queue: str, starts: int) -> None:
        """As much of it as is left; without any the queue leaves the ring."""
        left = self._credit.get(queue, 0) - starts
        if left > 0:
            self._credit[queue] = left
        else:
            self._credit.pop(queue, None)

    def drop(self, queue: str) -> None:
        self._credit.pop(queue, None)

    def of(self, queue: str) -> int:
        return self._credit.get(queue, 0)

    def share(self, places: int, most_of: Callable[[str], int | None] = lambda _: None) -> Mapping[str, int]:
        """Deals the places out, one to each queue in turn, and begins with the next queue the next time. `most_of` may
        say for a queue how many are enough."""
        shares: dict[str, int] = {}
        while places > 0:
            dealt = 0
            for queue in list(self._credit):
                has = shares.get(queue, 0)
                enough = most_of(queue)
                if has >= self._credit[queue] or (enough is not None and has >= enough):
                    continue
                shares[queue] = has + 1
                self._credit.move_to_end(queue)
                places -= 1
                dealt += 1
                if places == 0:
                    break
            if not dealt:
                break
        return shares

"""How many connections to Postgres this process has and may have: everything that opens one says so here."""

import threading
from typing import Protocol

from windlass.shared.metrics.services import DATABASE_CONNECTIONS, DATABASE_CONNECTIONS_LIMIT


class Pool(Protocol):
    """As the driver's pools are."""

    def get_size(self) -> int: ...

    def get_idle_size(self) -> int: ...

    def get_max_size(self) -> int: ...

    def is_closing(self) -> bool: ...


class Connections:
    """Asked from the thread that answers Prometheus, while others open and close."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pools: list[Pool] = []

    def watch(self, pool: Pool) -> None:
        with self._lock:
            self._pools = [*self._living(), pool]

    def used(self) -> int:
        return sum(pool.get_size() - pool.get_idle_size() for pool in self._living())

    def idle(self) -> int:
        return sum(pool.get_idle_size() for pool in self._living())

    def limit(self) -> int:
        return sum(pool.get_max_size() for pool in self._living())

    def _living(self) -> list[Pool]:
        return [pool for pool in self._pools if not pool.is_closing()]


OPEN = Connections()


def tell() -> None:
    """From now on the metrics say what is open."""
    DATABASE_CONNECTIONS.labels("used").set_function(OPEN.used)
    DATABASE_CONNECTIONS.labels("idle").set_function(OPEN.idle)
    DATABASE_CONNECTIONS_LIMIT.set_function(OPEN.limit)

"""Solitude: a task that has lost its worker twice runs alone, so that it takes nobody along the next time."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOST_WORKERS_BEFORE_ALONE = 2
CHECK_SECONDS = 0.1


class Solitude:
    """Many may share the process, or one may have it for itself; who wants it alone goes before newcomers."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._sharing = 0
        self._alone = 0

    def wait_for_company(self) -> None:
        """Returns when nobody has or wants the process alone: before claiming, so that others may take the task."""
        with self._condition:
            self._condition.wait_for(lambda: self._alone == 0)

    @contextmanager
    def shared(self) -> Iterator[None]:
        with self._condition:
            self._sharing += 1
        try:
            yield
        finally:
            with self._condition:
                self._sharing -= 1
                self._condition.notify_all()

    @contextmanager
    def alone(self, check: Callable[[], None]) -> Iterator[None]:
        """Waits for the others to end; `check` raises when waiting has become pointless."""
        with self._condition:
            self._alone += 1
        try:
            with self._condition:
                while not self._condition.wait_for(lambda: self._sharing == 0, CHECK_SECONDS):
                    check()
            with self.shared():
                yield
        finally:
            with self._condition:
                self._alone -= 1
                self._condition.notify_all()

"""Solitude: a task that has lost its worker twice runs alone, so that it takes nobody along the next time."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOST_WORKERS_BEFORE_ALONE = 2
CHECK_SECONDS = 0.1


class Solitude:
    """Many may share the process, or one may have it for itself; who wants it alone goes before newcomers.

    While they wait, `check` is called now and then: it raises when waiting has become pointless.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._inside = 0
        self._wanting_it_alone = 0
        self._taken = False
        self._arriving: set[int] = set()

    def wait_for_company(self) -> None:
        """Returns when nobody has or wants the process alone: before claiming, so that others may take the task."""
        with self._condition:
            self._condition.wait_for(lambda: self._wanting_it_alone == 0)
            self._arriving.add(threading.get_ident())

    def turned_away(self) -> None:
        """The thread that was about to come has got no task after all."""
        with self._condition:
            self._arriving.discard(threading.get_ident())
            self._condition.notify_all()

    @contextmanager
    def shared(self, check: Callable[[], None]) -> Iterator[None]:
        with self._condition:
            try:
                self._wait(lambda: not self._taken, check)
                self._inside += 1
            finally:
                self._arriving.discard(threading.get_ident())
                self._condition.notify_all()
        try:
            yield
        finally:
            with self._condition:
                self._inside -= 1
                self._condition.notify_all()

    @contextmanager
    def alone(self, check: Callable[[], None]) -> Iterator[None]:
        with self._condition:
            self._wanting_it_alone += 1
            self._arriving.discard(threading.get_ident())
            try:
                # Who has passed `wait_for_company` may have claimed a task by now: it is let in and out first.
                self._wait(lambda: self._inside == 0 and not self._arriving and not self._taken, check)
            except BaseException:
                self._wanting_it_alone -= 1
                self._condition.notify_all()
                raise
            self._taken = True
        try:
            yield
        finally:
            with self._condition:
                self._taken = False
                self._wanting_it_alone -= 1
                self._condition.notify_all()

    def _wait(self, condition: Callable[[], bool], check: Callable[[], None]) -> None:
        while not self._condition.wait_for(condition, CHECK_SECONDS):
            check()

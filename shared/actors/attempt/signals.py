"""Stop, deadline and news of one attempt."""

import math
import threading
import time
from collections.abc import Callable

from windlass.shared.actors.stopped import Stopped
from windlass.shared.errors import TimedOut


class Signals:
    """Set and read from any thread."""

    def __init__(self, timeout_seconds: float) -> None:
        self.deadline = math.inf
        """By `time.monotonic()`."""
        self.stop_reason: str | None = None
        self._timeout_seconds = timeout_seconds
        self._news = threading.Condition()
        self._listeners: tuple[Callable[[], None], ...] = ()

    def check(self) -> None:
        """Raises when the attempt should end; an actor that works in pieces calls it between them."""
        if self.stop_reason is not None:
            raise Stopped
        if time.monotonic() >= self.deadline:
            raise self._timed_out()

    def should_end(self) -> bool:
        return self.stop_reason is not None or time.monotonic() >= self.deadline

    def stop(self, reason: str = "stopping") -> None:
        """Ends the attempt at its next `check` or wait. The first reason stays."""
        with self._news:
            if self.stop_reason is not None:
                return
            self.stop_reason = reason
        self.notify()

    def pause(self, seconds: float) -> None:
        """Blocks the calling thread. Raises when the attempt should end."""
        self.wait(seconds, lambda: False)
        self.check()

    def wait(self, seconds: float, is_over: Callable[[], bool]) -> None:
        """Blocks until `is_over`, which is asked again at every `notify`, or until the attempt should end."""
        until = time.monotonic() + seconds
        with self._news:
            while self.stop_reason is None and not is_over():
                left = min(until, self.deadline) - time.monotonic()
                if left <= 0:
                    return
                self._news.wait(min(left, threading.TIMEOUT_MAX))

    def listen(self, listener: Callable[[], None]) -> None:
        """The listener is called at every `notify`, from any thread."""
        with self._news:
            self._listeners = (*self._listeners, listener)

    def listen_no_more(self, listener: Callable[[], None]) -> None:
        with self._news:
            self._listeners = tuple(each for each in self._listeners if each != listener)

    def notify(self) -> None:
        with self._news:
            self._news.notify_all()
        for listener in self._listeners:
            listener()

    def _timed_out(self) -> TimedOut:
        return TimedOut(f"the attempt took longer than its {self._timeout_seconds:g} s")

"""How often an open job is asked about: as configured, and more and more seldom where the provider calls back."""

from collections.abc import Callable
from typing import Final

from windlass.shared.backoff import Backoff

FIRST_PAUSE_SECONDS: Final = 10
LONGEST_PAUSE_SECONDS: Final = 60
"""Where callbacks are known to arrive: one that is lost costs so much, once."""


class Pauses:
    """Of one job. Who stops calling back while it is waited for is asked as often as any other."""

    def __init__(self, poll_seconds: float, *, calls_back: Callable[[], bool]) -> None:
        self._poll_seconds = poll_seconds
        self._calls_back = calls_back
        self._longer = Backoff(
            first_seconds=max(poll_seconds, FIRST_PAUSE_SECONDS),
            longest_seconds=max(poll_seconds, LONGEST_PAUSE_SECONDS),
        )

    def pause(self) -> float:
        return self._longer.pause() if self._calls_back() else self._poll_seconds


class Polling:
    """Made once per worker process. Whether callbacks arrive depends on networks that we cannot see: a provider is
    believed to call back while the ends of its jobs are learned that way, and no longer."""

    def __init__(self) -> None:
        self._callers: set[str] = set()

    def pauses(self, provider: str, poll_seconds: float) -> Pauses:
        """For one job."""
        return Pauses(poll_seconds, calls_back=lambda: provider in self._callers)

    def learned(self, provider: str, *, by_callback: bool) -> None:
        """That a job has ended, after a wait: because it was called for, or because it was asked about by itself."""
        if by_callback:
            self._callers.add(provider)
        else:
            self._callers.discard(provider)

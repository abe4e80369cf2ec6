"""How often an open job is asked about: as configured, and more and more seldom where the provider calls back."""

from collections.abc import Callable
from typing import Final

from windlass.shared.backoff import Backoff

FIRST_PAUSE_SECONDS: Final = 10
LONGEST_PAUSE_SECONDS: Final = 60
"""Where callbacks are known to arrive: one that is lost costs so much."""

MOST_HEARD: Final = 4
"""After so many ends that nobody called for, at the latest, a provider is asked as often as any other."""


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
    believed to call back while the ends of its jobs are mostly learned that way. A poll may be quicker than a callback
    that is on its way, so one that was is not the last word."""

    def __init__(self) -> None:
        self._heard: dict[str, int] = {}

    def pauses(self, provider: str, poll_seconds: float) -> Pauses:
        """For one job."""
        return Pauses(poll_seconds, calls_back=lambda: self._heard.get(provider, 0) > 0)

    def learned(self, provider: str, *, by_callback: bool) -> None:
        """That a job has ended, after a wait: because it was called for, or because it was asked about by itself."""
        heard = self._heard.get(provider, 0) + (1 if by_callback else -1)
        self._heard[provider] = min(max(heard, 0), MOST_HEARD)

"""How often an open job is asked about: as configured, and more and more seldom where the provider calls back."""

from typing import Final

from windlass.shared.backoff import Backoff

LONGEST_PAUSE_SECONDS: Final = 10


class Polling:
    """Made once per worker process. Whether callbacks arrive depends on networks that we cannot see: a provider is
    believed to call back while the ends of its jobs are learned that way, and no longer."""

    def __init__(self) -> None:
        self._callers: set[str] = set()

    def pauses(self, provider: str, poll_seconds: float) -> Backoff:
        """For one job."""
        longest = max(poll_seconds, LONGEST_PAUSE_SECONDS) if provider in self._callers else poll_seconds
        return Backoff(first_seconds=poll_seconds, longest_seconds=longest)

    def learned(self, provider: str, *, by_callback: bool) -> None:
        """That a job has ended, after a wait: because it was called for, or because it was asked about by itself."""
        if by_callback:
            self._callers.add(provider)
        else:
            self._callers.discard(provider)

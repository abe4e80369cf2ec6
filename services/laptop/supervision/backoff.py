"""How long to wait before something that ended is started again."""

from typing import Final

FIRST_SECONDS: Final = 0.2
LONGEST_SECONDS: Final = 10.0
GOOD_RUN_SECONDS: Final = 30.0


class Backoff:
    """Twice as long every time, and from the beginning again after a run that went well."""

    def __init__(self) -> None:
        self._next = FIRST_SECONDS

    def after(self, run_seconds: float) -> float:
        if run_seconds >= GOOD_RUN_SECONDS:
            self._next = FIRST_SECONDS
        delay, self._next = self._next, min(2 * self._next, LONGEST_SECONDS)
        return delay

"""How long to pause before the next try: twice as long every time, up to a longest, and anew when one went well."""


class Backoff:
    """What counts as going well is the caller's: `renew`, or a run of `good_run_seconds`."""

    def __init__(self, *, first_seconds: float, longest_seconds: float, good_run_seconds: float = float("inf")) -> None:
        self._first = first_seconds
        self._longest = longest_seconds
        self._good_run = good_run_seconds
        self._next = first_seconds

    def pause(self) -> float:
        """The pause before the next try."""
        seconds, self._next = self._next, min(2 * self._next, self._longest)
        return seconds

    def renew(self) -> None:
        self._next = self._first

    def after(self, run_seconds: float) -> float:
        """The pause before something that ran so long is started again."""
        if run_seconds >= self._good_run:
            self.renew()
        return self.pause()

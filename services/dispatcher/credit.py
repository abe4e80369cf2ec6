"""The credit that is out: what was rung for a moment ago, and has not been used as far as anybody has said."""

import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from windlass.shared.admission import ProviderView

OUT_SECONDS = 2.0
"""So long a doorbell is believed to be on its way to somebody; whoever has not started anything by then is rung for
again. One too many finds nothing, and costs a row of a call."""


class CreditOut(Mapping[str, int]):
    """By queue, how many starts are rung for."""

    def __init__(self) -> None:
        self._rung: dict[str, deque[tuple[float, int]]] = {}
        self._rules: dict[str, tuple[Any, ...]] = {}
        self._is_kept = False
        self._used_meanwhile: list[tuple[str, int]] = []

    @contextmanager
    def kept(self) -> Iterator[None]:
        """While a look is under way: what is used meanwhile may still be due in what it sees, and would be rung for
        twice. Who says so calls for another look, which sees it started."""
        self._is_kept = True
        try:
            yield
        finally:
            self._is_kept = False
            used, self._used_meanwhile = self._used_meanwhile, []
            for queue, starts in used:
                self.used(queue, starts)

    def meet(self, view: ProviderView) -> None:
        """What was rung for before somebody changed how much may start has met the old rules, and found nothing; and
        so has what was rung for where nothing is due. What comes next must not wait for those doorbells."""
        rules = (view.limit, view.rate, view.paused, view.breaker_state)
        is_changed = self._rules.setdefault(view.name, rules) != rules
        self._rules[view.name] = rules
        for queue, due, resumes in zip(view.queues, view.due_by_queue, view.resumes_by_queue, strict=True):
            if is_changed or due + resumes == 0:
                self._rung.pop(queue, None)

    def rung(self, queue: str, starts: int) -> None:
        self._rung.setdefault(queue, deque()).append((time.monotonic(), starts))

    def used(self, queue: str, starts: int) -> None:
        """Somebody has started so many: the oldest are used first."""
        if self._is_kept:
            self._used_meanwhile.append((queue, starts))
            return
        rung = self._rung.get(queue)
        while rung and starts > 0:
            at, number = rung.popleft()
            if number > starts:
                rung.appendleft((at, number - starts))
            starts -= number

    def __getitem__(self, queue: str) -> int:
        rung = self._rung[queue]
        while rung and rung[0][0] < time.monotonic() - OUT_SECONDS:
            rung.popleft()
        return sum(number for _, number in rung)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rung)

    def __len__(self) -> int:
        return len(self._rung)

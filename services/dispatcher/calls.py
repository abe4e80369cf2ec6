"""Which providers the dispatcher was called for since its last look; looking at all of them costs what all cost."""

import asyncio
from collections.abc import Iterable

EVERYBODY = "*"


class Calls:
    """Names gather here until somebody takes them; `None` are all."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._is_for_all = True
        self._answered: str | None = None
        self.heard = asyncio.Event()

    def hear(self, payload: str) -> None:
        """A notice of `wake_dispatcher`, or of a listener that may have missed some."""
        answered, self._answered = self._answered, None
        if payload in {"", EVERYBODY}:
            self.call_for_all()
        elif payload != answered:
            self.call(payload.split("\n"))

    def answer(self, name: str) -> None:
        """The next notice is of the transaction that has just been heard of; if it calls for this one alone, nobody has
        to look."""
        self._answered = name

    def call(self, names: Iterable[str]) -> None:
        self._names.update(names)
        if self._names:
            self.heard.set()

    def call_for_all(self) -> None:
        self._is_for_all = True
        self.heard.set()

    def take(self) -> set[str] | None:
        names, self._names = self._names, set()
        is_for_all, self._is_for_all = self._is_for_all, False
        self.heard.clear()
        return None if is_for_all else names

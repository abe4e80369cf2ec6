"""`windlass up --reload`: a changed file starts the actors again, on new code, and what ran is handed back."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from windlass.services.laptop.reloading.sources import Seen, changed, look

LOOK_SECONDS: Final = 0.5
SETTLE_SECONDS: Final = 0.1
"""An editor that writes several files is waited for."""

NAMED_AT_MOST: Final = 3

UNCACHED: Final = {"PYTHONDONTWRITEBYTECODE": "1"}
"""A cached module is known by its size and its second: of two saves in one second it may be the first."""


class Reload:
    """Made before anything is loaded, so that no change is missed."""

    def __init__(self, places: Sequence[Path], say: Callable[[str], None]) -> None:
        self._places = places
        self._say = say
        self._seen = look(places)
        self.wrong_before: set[str] = set()
        """What was wrong when all that runs was started: it keeps no change of another file from being taken up."""

    async def run(
        self, register: Callable[[], Awaitable[set[str]]], start_again: Callable[[], Awaitable[None]]
    ) -> None:
        """Until it is cancelled. `register` writes what the actors take and returns what is wrong with them, a sentence
        each; `start_again` returns when they run on the new code."""
        self._say(f"watching the {_count(self._seen)} below {self.where}")
        while True:
            files = _in_words(await self.changes())
            try:
                await self._take_up(files, register, start_again)
            except Exception as error:  # noqa: BLE001 - reported; the next save is another chance
                self._say(f"{files} changed, but the actors were not reloaded: {type(error).__name__}: {error}")

    async def changes(self) -> list[str]:
        """Waits until files have changed, and returns them."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = await self._settled(look(self._places), self._seen)
            if files := changed(self._seen, now):
                self._seen = now
                return files

    @property
    def where(self) -> str:
        return " and ".join(map(str, self._places))

    async def _settled(self, now: Seen, before: Seen) -> Seen:
        while now != before:
            before = now
            await asyncio.sleep(SETTLE_SECONDS)
            now = look(self._places)
        return now

    async def _take_up(
        self, files: str, register: Callable[[], Awaitable[set[str]]], start_again: Callable[[], Awaitable[None]]
    ) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        wrong = await register()
        if new := wrong - self.wrong_before:
            self._say(f"{files} changed, and the old code stays until the next save: {'; '.join(sorted(new))}")
            return
        self.wrong_before = wrong
        self._say(f"{files} changed: registered anew; what runs is handed back, and the actors start again")
        await start_again()
        self._say(f"the actors are ready again, {clock() - began:.1f} s after {files} changed")


def _in_words(files: Sequence[str]) -> str:
    names = [Path(each).name for each in files[:NAMED_AT_MOST]]
    more = len(files) - len(names)
    return " and ".join(names) + (f" and {more} more" if more else "")


def _count(seen: Seen) -> str:
    return "1 Python file" if len(seen) == 1 else f"{len(seen)} Python files"

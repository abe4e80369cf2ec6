"""Clears up after a supervisor that was killed: it noted whom it had started, and its successor ends them."""

import json
import signal
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final

from windlass.services.laptop.kept_files import random_word, write_kept
from windlass.services.laptop.supervision.children import Child
from windlass.services.laptop.supervision.waiting import until
from windlass.shared.process.procfs import (
    ProcessIdentity,
    boot_id,
    descendants,
    initial_environment,
    running_processes,
)

# Inherited by the children's children: it tells whose they are when their parents are gone.
MARK: Final = "WINDLASS_SUPERVISED_BY"
STOP_SECONDS: Final = 10


class ProcessNotes:
    """The file that names every process of this run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._token = random_word(32)

    @property
    def mark(self) -> dict[str, str]:
        """The variable to start every child with."""
        return {MARK: self._token}

    def write(self, children: Collection[Child]) -> None:
        notes = {
            "boot": boot_id(),
            "token": self._token,
            "processes": [[child.identity.pid, child.identity.started, int(child.death_signal)] for child in children],
        }
        write_kept(self._path, json.dumps(notes))

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)


async def clear_leftovers(path: Path, say: Callable[[str], None]) -> None:
    """Ends what is left of the run whose notes these are: asked first, each in its own way, then killed."""
    leftovers = _Leftovers(_read_notes(path))
    if not (found := leftovers.everyone()):
        return
    say(f"clearing up after a run that was killed: {len(found)} of its processes are left")
    leftovers.ask_to_stop()
    if not await until(lambda: not leftovers.everyone(), STOP_SECONDS, every=0.1):
        for process in leftovers.everyone():
            process.send(signal.SIGKILL)
        await until(lambda: not leftovers.everyone(), STOP_SECONDS, every=0.1)


def _read_notes(path: Path) -> dict[str, Any]:
    """Empty when there are none, or when the machine was started anew since."""
    try:
        notes: dict[str, Any] = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return notes if notes["boot"] == boot_id() else {}


class _Leftovers:
    def __init__(self, notes: dict[str, Any]) -> None:
        self._noted = {ProcessIdentity(pid, started): signum for pid, started, signum in notes.get("processes", ())}
        self._mark = f"{MARK}={notes.get('token', 'no notes')}".encode()
        self._seen: set[ProcessIdentity] = set()

    def ask_to_stop(self) -> None:
        """Those that the supervisor started; they see to their own children, and nobody else to orphans."""
        heads = self._heads()
        asked = {process: self._noted[process] for process in heads}
        for orphan in set(self._marked()).difference(heads, descendants(*(head.pid for head in heads))):
            asked[orphan] = signal.SIGTERM
        for process, signum in asked.items():
            process.send(signum)
            process.send(signal.SIGCONT)  # one that was frozen could not even hear it

    def everyone(self) -> set[ProcessIdentity]:
        # Of a worker nobody but root can read the mark: once seen below its guardian it is known without it.
        known = {*self._heads(), *self._marked(), *(process for process in self._seen if process.is_running())}
        below = descendants(*(process.pid for process in known))
        self._seen = known.union(process for process in below if process.is_running())
        return self._seen

    def _heads(self) -> list[ProcessIdentity]:
        return [process for process in self._noted if process.is_running()]

    def _marked(self) -> list[ProcessIdentity]:
        return [process for process in running_processes() if self._mark in initial_environment(process.pid)]

"""Signals to an agent's processes, and the notes of them that become the proof of its end."""

import os
import signal
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from windlass.shared.process.procfs import ProcessIdentity

PIDS_TO_TELL = 200


class Notes:
    """Which processes were sent what, and when; each one once, however often it had to be told."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self._told: set[tuple[int, int]] = set()

    def add(self, signum: signal.Signals, pids: Iterable[int]) -> None:
        new = sorted({(signum, pid) for pid in pids} - self._told)
        if new:
            self._told.update(new)
            entry = {"signal": signum.name, "at": now(), "pids": [pid for _, pid in new[:PIDS_TO_TELL]]}
            self.entries.append(entry if len(new) <= PIDS_TO_TELL else {**entry, "pids_in_all": len(new)})


def kill(processes: Sequence[ProcessIdentity], notes: Notes, *, spare: int | None = None) -> None:
    """Whole groups first: the kernel then lets no member fork any more, however fast it does. Our own group and that
    of the keeper (`spare`) are not for us to end: a process that has not left it yet is ended by itself."""
    notes.add(signal.SIGKILL, (each.pid for each in processes))
    for group in {group_of(each.pid) for each in processes} - {None, spare, os.getpgrp()}:
        assert group is not None
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    for each in processes:
        each.send(signal.SIGKILL)


def group_of(pid: int) -> int | None:
    with suppress(ProcessLookupError, PermissionError):
        return os.getpgid(pid)
    return None


def now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")

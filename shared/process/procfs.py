"""What /proc tells about processes, with identities that a reused process number cannot forge."""

import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

PROC = Path("/proc")


@dataclass(frozen=True)
class ProcessIdentity:
    """A process number and the clock tick at which the kernel started that process."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> Self | None:
        entry = _entry(pid)
        return cls(pid, entry.started) if entry else None

    def is_running(self) -> bool:
        """Zombies do not count: they have ended and only wait to be collected."""
        entry = _entry(self.pid)
        return entry is not None and entry.started == self.started and entry.state not in "ZX"

    def send(self, signum: int) -> bool:
        """Signals this very process; the descriptor keeps its number from being reused in between."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        try:
            if not self.is_running():
                return False
            signal.pidfd_send_signal(descriptor, signum)
        except (ProcessLookupError, PermissionError):
            return False
        finally:
            os.close(descriptor)
        return True


def direct_children(pid: int) -> list[ProcessIdentity]:
    """Zombies included."""
    return [ProcessIdentity(entry.pid, entry.started) for entry in _entries() if entry.parent == pid]


def descendants(*pids: int, without: int | None = None) -> list[ProcessIdentity]:
    """All processes below these, nearest first, without these themselves, and without one of them and all below it."""
    below = defaultdict(list)
    for entry in _entries():
        if entry.pid != without:
            below[entry.parent].append(entry)
    found = [entry for pid in pids for entry in below[pid]]
    for entry in found:
        found.extend(below[entry.pid])
    return [ProcessIdentity(entry.pid, entry.started) for entry in found]


def running_processes() -> list[ProcessIdentity]:
    return [ProcessIdentity(entry.pid, entry.started) for entry in _entries() if entry.state not in "ZX"]


def initial_environment(pid: int) -> list[bytes]:
    """The variables that the process was started with; empty for processes of other users."""
    try:
        return (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def running_in(directory: Path, program: str) -> list[ProcessIdentity]:
    """The processes of that program whose working directory this is, as far as we may see them."""
    where, found = os.path.realpath(directory), []
    for process in running_processes():
        home = PROC / str(process.pid)
        try:
            if (home / "cwd").readlink() == Path(where) and (home / "exe").readlink().name == program:
                found.append(process)
        except OSError:
            continue
    return found


@dataclass(frozen=True)
class _Entry:
    pid: int
    parent: int
    started: int
    state: str


def _entry(pid: int) -> _Entry | None:
    # By hand and not through a path: whoever ends a fork bomb has to read faster than it forks.
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:
        line = os.read(descriptor, 4096)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    # The program's name stands in parentheses and may itself hold spaces and parentheses.
    state, parent, *others = line.rpartition(b")")[2].split()
    return _Entry(pid, int(parent), int(others[17]), state.decode())


def _entries() -> Iterator[_Entry]:
    for name in os.listdir(PROC):  # noqa: PTH208
        if name.isdigit() and (entry := _entry(int(name))):
            yield entry

"""What /proc tells about processes, with identities that a reused process number cannot forge: nobody else reads it.

By hand and not through paths, one line per process: whoever ends a fork bomb has to read faster than it forks, and an
agent's watcher looks at every process of the machine ten times a second.
"""

import os
import re
import signal
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
SHARED_MEMORY: Final = re.compile(
    rb"([0-9a-f]+)-([0-9a-f]+) ..[-x]s ([0-9a-f]+) (\S+ \d+) +(?:/dev/zero|/memfd:|/SYSV|/dev/shm/)"
)
"""A line of `maps`: from where to where, from which place of which memory."""


class Stat:
    """The line `stat` of a process; of its fifty fields few are asked for, so each is read when it is."""

    __slots__ = ("_fields", "parent", "pid")

    def __init__(self, pid: int, line: bytes) -> None:
        # The program's name stands in parentheses and may itself hold spaces and parentheses.
        self._fields = line.rpartition(b")")[2].split()
        self.pid = pid
        self.parent = int(self._fields[1])

    @property
    def identity(self) -> "ProcessIdentity":
        return ProcessIdentity(self.pid, self.started)

    @property
    def is_running(self) -> bool:
        """Zombies do not count: they have ended and only wait to be collected."""
        return self._fields[0] not in {b"Z", b"X"}

    @property
    def has_ended(self) -> bool:
        """All of it: one whose first thread has ended looks like a zombie while its other threads work on."""
        return not self.is_running and int(self._fields[17]) <= 1

    @property
    def started(self) -> int:
        """In clock ticks."""
        return int(self._fields[19])

    @property
    def group(self) -> int:
        return int(self._fields[2])

    @property
    def niceness(self) -> int:
        return int(self._fields[16])

    @property
    def cpu_seconds(self) -> float:
        return (int(self._fields[11]) + int(self._fields[12])) / TICKS_PER_SECOND

    @property
    def waited_cpu_seconds(self) -> float:
        """Of children that have ended and were collected."""
        return (int(self._fields[13]) + int(self._fields[14])) / TICKS_PER_SECOND

    @property
    def resident_bytes(self) -> int:
        return int(self._fields[21]) * PAGE_BYTES


def stat_of(pid: int) -> Stat | None:
    """None of one that is gone."""
    line = _read(f"/proc/{pid}/stat")
    return Stat(pid, line) if line else None


def stats() -> Iterator[Stat]:
    """Of every process of the machine."""
    for pid in pids():
        if stat := stat_of(pid):
            yield stat


@dataclass(frozen=True)
class ProcessIdentity:
    """A process number and the clock tick at which the kernel started that process."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> Self | None:
        stat = stat_of(pid)
        return cls(pid, stat.started) if stat else None

    def is_running(self) -> bool:
        stat = stat_of(self.pid)
        return stat is not None and stat.started == self.started and stat.is_running

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
    return [ProcessIdentity(each.pid, each.started) for each in stats() if each.parent == pid]


def descendants(*pids: int, without: int | None = None) -> list[ProcessIdentity]:
    """All processes below these, nearest first, without these themselves, and without one of them and all below it."""
    below = defaultdict(list)
    for each in stats():
        if each.pid != without:
            below[each.parent].append(each)
    found = [each for pid in pids for each in below[pid]]
    for each in found:
        found.extend(below[each.pid])
    return [ProcessIdentity(each.pid, each.started) for each in found]


def running_processes() -> list[ProcessIdentity]:
    return [ProcessIdentity(each.pid, each.started) for each in stats() if each.is_running]


def initial_environment(pid: int) -> list[bytes]:
    """The variables that the process was started with; empty for processes of other users."""
    found = _read_all(f"/proc/{pid}/environ")
    return found.split(b"\0") if found else []


def running_in(directory: Path, program: str) -> list[ProcessIdentity]:
    """The processes of that program whose working directory this is, as far as we may see them."""
    where, found = os.path.realpath(directory), []
    for process in running_processes():
        home = Path("/proc", str(process.pid))
        try:
            if (home / "cwd").readlink() == Path(where) and (home / "exe").readlink().name == program:
                found.append(process)
        except OSError:
            continue
    return found


def fair_share_bytes(pid: int) -> int:
    """Its memory, where what it shares with others is divided among them: of who is gone nothing, and all of it of one
    that we may not look into."""
    return _fair_share(pid)[0]


def fair_sum_bytes(pids: Sequence[int]) -> int:
    """Of several, with all the shared memory that they have mapped: its pages stay where a process gives them back to
    the kernel (`MADV_DONTNEED`), and are in no process' share then."""
    shares = [_fair_share(pid) for pid in pids]
    shown = sum(shared for _, shared in shares)
    return sum(whole for whole, _ in shares) + max(0, shared_bytes(pids) - shown)


def shared_bytes(pids: Iterable[int]) -> int:
    """The size of shared memory that belongs to no file and is mapped by one of them at least. The list of mappings is
    read to its end: it is sorted by address, and a process chooses its addresses."""
    sizes: dict[bytes, int] = {}
    for pid in pids:
        for line in _read_all(f"/proc/{pid}/maps").splitlines():
            if line.endswith(b"(deleted)") and (match := SHARED_MEMORY.match(line)):
                begin, end, offset = (int(each, 16) for each in match.group(1, 2, 3))
                sizes[match[4]] = max(sizes.get(match[4], 0), offset + end - begin)
    return sum(sizes.values())


def _fair_share(pid: int) -> tuple[int, int]:
    """All of it, and what of it is shared memory."""
    found = dict(line.split(b":", 1) for line in _read(f"/proc/{pid}/smaps_rollup").splitlines() if b":" in line)
    if (whole := found.get(b"Pss")) is not None:
        return int(whole.split()[0]) * 1024, int(found.get(b"Pss_Shmem", b"0").split()[0]) * 1024
    stat = stat_of(pid)
    return (stat.resident_bytes if stat is not None else 0), 0


def data_bytes(pid: int) -> int:
    """What RLIMIT_DATA is compared with, nearly: the stack is in it as well."""
    fields = _read(f"/proc/{pid}/statm").split()
    return int(fields[5]) * PAGE_BYTES if fields else 0


def open_files(pid: int) -> Iterator[os.stat_result | None]:
    """What it holds open, one answer for each descriptor: none where it was closed meanwhile."""
    try:
        names = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208 - thousands of entries
    except OSError:
        return
    for name in names:
        status = None
        with suppress(OSError):
            status = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116
        yield status


def threads_of(user: int) -> int:
    """How many run under that account."""
    threads = 0
    for pid in pids():
        with suppress(OSError):
            if os.stat(f"/proc/{pid}").st_uid == user:  # noqa: PTH116
                threads += len(os.listdir(f"/proc/{pid}/task"))  # noqa: PTH208
    return threads


def path_of(descriptor: int) -> str:
    """A name for exactly what this descriptor holds, whatever becomes of its own."""
    return f"/proc/self/fd/{descriptor}"


def namespace_of(pid: int, kind: str) -> str:
    """The link by which a process' namespace can be told from another's, and entered."""
    return f"/proc/{pid}/ns/{kind}"


def boot_id() -> str:
    """Another one each time the machine is started."""
    return Path("/proc/sys/kernel/random/boot_id").read_text()


@dataclass(frozen=True)
class Mount:
    """A line of our `mountinfo`: what of a file system stands where, of which kind, and how."""

    root: str
    point: str
    kind: str
    options: tuple[str, ...]
    """Those of the file system itself."""


def own_mounts() -> list[Mount]:
    found = []
    for line in sure("/proc/self/mountinfo").decode(errors="replace").splitlines():
        mount, _, system = line.partition(" - ")
        root, point = mount.split(" ")[3:5]
        kind, _, options = system.split(" ")[:3]
        found.append(Mount(root, point, kind, tuple(options.split(","))))
    return found


def own_numbers() -> list[int]:
    """Ours in every process namespace that this /proc can see us in: one alone, if it is that of our own."""
    for line in sure("/proc/self/status").splitlines():
        if line.startswith(b"NSpid:"):
            return [int(number) for number in line.split()[1:]]
    return []


def cgroup_of(pid: int) -> str:
    """All control groups that it is in, as far as they are below those of our own namespace."""
    return sure(f"/proc/{pid}/cgroup").decode(errors="replace")


def oom_score_of(pid: int) -> int:
    """What it has added to its own, or somebody for it."""
    return int(sure(f"/proc/{pid}/oom_score_adj"))


def own_namespace(kind: str) -> str:
    """Its number is not given to another one as long as anybody lives in it; none where the kernel has no such kind."""
    try:
        return os.readlink(f"/proc/self/ns/{kind}")  # noqa: PTH115 - no path, though it reads like one
    except FileNotFoundError:
        return ""


def sure(path: str) -> bytes:
    """All of a file whose absence would be taken for a proof: only what is gone is missing, and what cannot be read is
    an error."""
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - of every process
        return file.readall()


def sure_stat(pid: int) -> Stat:
    return Stat(pid, sure(f"/proc/{pid}/stat"))


def volunteer_to_go(score: int) -> None:
    """When memory ends, the kernel ends those first who have the higher score."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "wb", buffering=0) as file:  # noqa: PTH123
        file.write(b"%d" % score)


def pids() -> Iterator[int]:
    return map(int, filter(str.isdigit, os.listdir("/proc")))  # noqa: PTH208 - a path object for each takes three times as long


def _read(path: str) -> bytes:
    """A page of it, which is all of what is a line."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            return os.read(descriptor, 4096)
        finally:
            os.close(descriptor)
    return b""


def _read_all(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""

"""What everything below a process uses, read from /proc many times a second: so it reads one line per process."""

import os
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Member:
    pid: int
    parent: int
    is_running: bool
    cpu_seconds: float
    waited_cpu_seconds: float
    """Of children that have ended and were collected."""
    resident_bytes: int


@dataclass(frozen=True)
class Usage:
    """Of all processes below one, together."""

    pids: tuple[int, ...]
    resident_bytes: int
    cpu_seconds: float


def usage_below(pid: int) -> Usage:
    """That process itself counts only with what its ended children had used."""
    children: dict[int, list[Member]] = defaultdict(list)
    top: Member | None = None
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - a path object for each takes three times as long
        member = _member(int(name))
        if member is not None:
            children[member.parent].append(member)
            top = member if member.pid == pid else top
    members = list(children[pid])
    for member in members:
        members.extend(children[member.pid])
    return Usage(
        pids=tuple(member.pid for member in members if member.is_running),
        resident_bytes=sum(member.resident_bytes for member in members),
        cpu_seconds=sum(member.cpu_seconds + member.waited_cpu_seconds for member in members)
        + (top.waited_cpu_seconds if top else 0.0),
    )


def fair_share_bytes(pid: int) -> int:
    """Its memory, where what it shares with others is divided among them: of who is gone nothing, and all of it of one
    that we may not look into."""
    for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    member = _member(pid)
    return member.resident_bytes if member is not None else 0


def data_bytes(pid: int) -> int:
    """What RLIMIT_DATA is compared with, nearly: the stack is in it as well."""
    fields = _read(f"/proc/{pid}/statm").split()
    return int(fields[5]) * PAGE_BYTES if fields else 0


def _member(pid: int) -> Member | None:
    line = _read(f"/proc/{pid}/stat")
    if not line:
        return None
    # The program's name stands in parentheses and may itself hold spaces and parentheses.
    fields = line.rpartition(b")")[2].split()
    return Member(
        pid=pid,
        parent=int(fields[1]),
        is_running=fields[0] not in {b"Z", b"X"},
        cpu_seconds=(int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND,
        waited_cpu_seconds=(int(fields[13]) + int(fields[14])) / TICKS_PER_SECOND,
        resident_bytes=int(fields[21]) * PAGE_BYTES,
    )


def _read(path: str) -> bytes:
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            return os.read(descriptor, 4096)
        finally:
            os.close(descriptor)
    return b""

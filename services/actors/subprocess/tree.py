"""What everything below a process uses."""

from collections import defaultdict
from dataclasses import dataclass

from windlass.shared.process import procfs


@dataclass(frozen=True)
class Usage:
    """Of all processes below one, together."""

    pids: tuple[int, ...]
    resident_bytes: int
    cpu_seconds: float


def usage_below(pid: int) -> Usage:
    """That process itself counts only with what its ended children had used."""
    children: dict[int, list[procfs.Stat]] = defaultdict(list)
    top: procfs.Stat | None = None
    for each in procfs.stats():
        children[each.parent].append(each)
        top = each if each.pid == pid else top
    members = list(children[pid])
    for member in members:
        members.extend(children[member.pid])
    return Usage(
        pids=tuple(member.pid for member in members if member.is_running),
        resident_bytes=sum(member.resident_bytes for member in members),
        cpu_seconds=sum(member.cpu_seconds + member.waited_cpu_seconds for member in members)
        + (top.waited_cpu_seconds if top else 0.0),
    )

"""Who else lives here: every process, with what tells whose it is."""

from collections.abc import Iterator
from dataclasses import dataclass

from windlass.services.actors.succession.whereabouts import MARK
from windlass.shared.process import procfs
from windlass.shared.process.procfs import ProcessIdentity


@dataclass(frozen=True)
class Neighbour:
    """One that has not ended."""

    itself: ProcessIdentity
    parent: int
    group: int
    niceness: int
    oom_score: int
    cgroup: str
    mark: str | None
    """The worker in whose name it was started, empty for none; none if its environment cannot be seen."""


def neighbours() -> list[Neighbour]:
    """Raises OSError when one cannot be looked at: one that was overlooked must not pass for one that is gone."""
    return [each for pid in procfs.pids() for each in _look(pid)]


def _look(pid: int) -> Iterator[Neighbour]:
    try:
        stat = procfs.sure_stat(pid)
        if not stat.has_ended:
            score, cgroup = procfs.oom_score_of(pid), procfs.cgroup_of(pid)
            yield Neighbour(stat.identity, stat.parent, stat.group, stat.niceness, score, cgroup, _mark(pid))
    except (FileNotFoundError, ProcessLookupError):
        return  # it has ended meanwhile


def _mark(pid: int) -> str | None:
    variables = [each for each in procfs.initial_environment(pid) if b"=" in each]
    if not variables:
        return None
    mark = f"{MARK}=".encode()
    return next((each[len(mark) :].decode(errors="replace") for each in variables if each.startswith(mark)), "")

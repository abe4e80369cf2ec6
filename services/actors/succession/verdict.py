"""Whether a worker is proven dead, with all that it ever started: a function of what is known, without a guess."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from windlass.services.actors.subprocess.keeper import FIRST_TO_GO, NICENESS
from windlass.services.actors.succession.neighbours import Neighbour
from windlass.services.actors.succession.whereabouts import Whereabouts
from windlass.shared.process.procfs import ProcessIdentity

MOST_NICE = 19


class Finding(Enum):
    """What a look at a worker came to."""

    DEAD = auto()
    LIVES = auto()
    """Its guardian does, and is its judge."""
    NOT_YET = auto()
    """Something that may be its own lives: another look may find it gone."""
    UNKNOWN = auto()
    """From here nobody can tell, however often he looks."""


@dataclass(frozen=True)
class Verdict:
    finding: Finding
    reason: str


def judge(
    worker_id: str,
    dead: Whereabouts | None,
    here: Whereabouts,
    around: Sequence[Neighbour],
    others: Collection[Whereabouts],
) -> Verdict:
    """Of the worker that was at `dead`, by a successor that is `here`: `around` are all processes that it sees,
    `others` the whereabouts of all that are registered, the dead one's among them or not."""
    if dead is None:
        return Verdict(Finding.UNKNOWN, "it has not said where it was")
    if (dead.boot_id, dead.hostname) != (here.boot_id, here.hostname):
        return Verdict(Finding.UNKNOWN, "it was on another machine, or this one has been started since")
    if dead.pid_namespace != here.pid_namespace:
        return _by_its_container(dead, here)
    if dead.time_namespace != here.time_namespace:
        return Verdict(Finding.UNKNOWN, "its processes were started by another clock")
    return _by_its_processes(worker_id, dead, here, around, others)


def _by_its_container(dead: Whereabouts, here: Whereabouts) -> Verdict:
    """Its processes cannot be seen from here, so their absence means nothing. But a container runs once at a time, and
    with its first process the kernel ends all of them before anybody hears of it."""
    if dead.container is None or dead.container != here.container:
        return Verdict(Finding.UNKNOWN, "its processes cannot be seen from here")
    if None in (dead.container_run, here.container_run) or dead.container_run == here.container_run:
        return Verdict(Finding.UNKNOWN, "its processes cannot be seen from here, and its container may still run")
    return Verdict(Finding.DEAD, "its container was started anew")


def _by_its_processes(
    worker_id: str,
    dead: Whereabouts,
    here: Whereabouts,
    around: Sequence[Neighbour],
    others: Collection[Whereabouts],
) -> Verdict:
    """That namespaces have the same number means that they are the same, or that nobody lives in the former any more:
    either way its processes would be found, if they lived."""
    living = {each.itself for each in around}
    if dead.guardian in living:
        return Verdict(Finding.LIVES, f"its guardian {dead.guardian.pid} lives")
    if dead.worker in living:
        return Verdict(Finding.NOT_YET, f"it lives, as process {dead.worker.pid}")
    owners = {each for other in (here, *others) for each in (other.worker, other.guardian)}
    owners = (owners | set(here.ancestors)) - {dead.worker, dead.guardian}
    by_pid = {each.itself.pid: each for each in around}
    for each in around:
        if _may_be_below(dead, each, by_pid, owners) and (why := _looks_like(worker_id, dead, here, each, by_pid)):
            return Verdict(Finding.NOT_YET, f"process {each.itself.pid} lives, {why}")
    gone = f"worker {dead.worker.pid} and guardian {dead.guardian.pid} are gone"
    return Verdict(Finding.DEAD, f"{gone}, and nothing that they had started is left")


def _may_be_below(
    dead: Whereabouts, process: Neighbour, by_pid: Mapping[int, Neighbour], owners: Collection[ProcessIdentity]
) -> bool:
    """Whether it may have come of the dead worker, by whom it is below now. What came of it is younger, and fell to who
    was above the guardian, or to the first process of all: to nobody who is younger than the worker, and to nobody from
    outside of this namespace, whose number is 0 here."""
    each = process
    while each.itself.started >= dead.worker.started:
        if each.itself in dead.ancestors:
            return True
        if each.itself in owners or each.parent == 0:
            return False
        if each.parent not in by_pid:
            return True  # it has just ended, and somebody else has it now
        each = by_pid[each.parent]
    return each.itself.pid == 1 or each.itself in dead.ancestors


def _looks_like(
    worker_id: str, dead: Whereabouts, here: Whereabouts, process: Neighbour, by_pid: Mapping[int, Neighbour]
) -> str | None:
    """Why it may be one of them, though it stands where others may stand as well; none when it is not."""
    if process.mark:
        return "which it has started" if process.mark == worker_id else None
    if process.group == dead.group:
        return "in its process group"
    if process.mark is None:
        is_elsewhere = dead.cgroup_namespace == here.cgroup_namespace and process.cgroup != dead.cgroup
        if is_elsewhere or _was_started_by_a_stranger(worker_id, dead, here, process, by_pid):
            return None
        return "and nobody can see whose it is"
    # What ran below a keeper keeps both, also with an environment that was cleared; to be less nice takes a privilege.
    is_nice = dead.niceness + NICENESS <= MOST_NICE and process.niceness >= dead.niceness + NICENESS
    goes_first = dead.oom_score < FIRST_TO_GO <= process.oom_score
    return "and has run below a keeper" if is_nice or goes_first else None


def _was_started_by_a_stranger(
    worker_id: str, dead: Whereabouts, here: Whereabouts, process: Neighbour, by_pid: Mapping[int, Neighbour]
) -> bool:
    """The processes of a Postgres server overwrite their environment, and their parent does not. A parent that is a
    stranger has started the process itself: the dead worker's orphans fall to the guardian's ancestors alone."""
    parent = by_pid.get(process.parent)
    if parent is None or parent.itself.started > process.itself.started:
        return False
    if parent.itself.pid == 1 or parent.itself in dead.ancestors:
        return False
    return _looks_like(worker_id, dead, here, parent, by_pid) is None

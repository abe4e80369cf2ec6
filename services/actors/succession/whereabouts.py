"""Where a worker is: machine, namespaces, container and processes, told so that others can judge it when it is dead."""

import logging
import os
import re
import socket
from dataclasses import asdict, dataclass
from typing import Any, Self

from windlass.shared.errors import words_of
from windlass.shared.process import procfs
from windlass.shared.process.procfs import Mount, ProcessIdentity

log = logging.getLogger("actors")

MARK = "WINDLASS_WORKER_ID"
"""In the environment of all that a worker starts."""

OF_THE_KUBELET = re.compile(r"/pods/([0-9a-f-]{36})/containers/([^/]+)/[0-9a-f]+$")
"""The file for a container's last words, which the kubelet binds into it: by this the pod and the container's name are
known inside, and stay the same when it is started again. A pod's host name is that of all its containers."""

OF_AN_ENGINE = ("/.dockerenv", "/run/.containerenv")
"""A container of Docker's or Podman's keeps its writable layer when it is started again, and shares it with nobody."""


def mark_all_that_starts(worker_id: str) -> None:
    """From now on, in this process."""
    os.environ[MARK] = worker_id


def own_mark() -> dict[str, str]:
    """For those whose environment is put together anew."""
    return {MARK: os.environ[MARK]} if MARK in os.environ else {}


@dataclass(frozen=True)
class Whereabouts:
    """As a worker registers them. What is none is not known, and proves nothing."""

    hostname: str
    boot_id: str
    pid_namespace: str
    time_namespace: str
    """Of the clock that start times are told by."""
    cgroup_namespace: str
    cgroup: str
    container: str | None
    """The same each time that this container is started, and never that of another one on this machine."""
    container_run: int | None
    """Another one each time that it is started: the number of its control group, which the kernel gives out once."""
    worker: ProcessIdentity
    guardian: ProcessIdentity
    ancestors: tuple[ProcessIdentity, ...]
    """Above the guardian. If it dies, orphans fall to one of these or to the first process, and to nobody else."""
    group: int | None
    """The process group of guardian and worker, if it is theirs alone."""
    niceness: int
    oom_score: int
    """What is asked for when memory ends, as its niceness: agents have more of both."""

    def as_document(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, document: dict[str, Any]) -> Self | None:
        """None of one that has not said it, or not in these words."""
        try:
            worker, guardian = (ProcessIdentity(**document[name]) for name in ("worker", "guardian"))
            ancestors = tuple(ProcessIdentity(**each) for each in document["ancestors"])
            return cls(**{**document, "worker": worker, "guardian": guardian, "ancestors": ancestors})
        except (KeyError, TypeError):
            return None


def of_this_worker(guardian_pid: int) -> Whereabouts | None:
    """None where it cannot be known; then nobody can prove anything about it, and it about nobody."""
    try:
        mounts = procfs.own_mounts()
        worker, guardian = procfs.stat_of(os.getpid()), procfs.stat_of(guardian_pid)
        if worker is None or guardian is None or not sees_everybody(mounts, procfs.own_numbers(), os.getpid()):
            return None
        return Whereabouts(
            hostname=socket.gethostname(),
            boot_id=procfs.boot_id().strip(),
            pid_namespace=procfs.own_namespace("pid"),
            time_namespace=procfs.own_namespace("time"),
            cgroup_namespace=procfs.own_namespace("cgroup"),
            cgroup=procfs.cgroup_of(os.getpid()),
            container=container(mounts, by_an_engine=any(map(os.path.exists, OF_AN_ENGINE))),
            container_run=_container_run(mounts),
            worker=worker.identity,
            guardian=guardian.identity,
            ancestors=tuple(_above(guardian)),
            group=worker.group if worker.group == guardian_pid else None,
            niceness=worker.niceness,
            oom_score=procfs.oom_score_of(os.getpid()),
        )
    except (OSError, ValueError, IndexError) as error:
        log.info("where this worker is cannot be told, so its successor will wait for leases (%s)", words_of(error))
        return None


def sees_everybody(mounts: list[Mount], own_numbers: list[int], own_pid: int) -> bool:
    """Whether /proc is that of our own process namespace and hides nobody: else that a process is not found there means
    nothing."""
    shown = [mount for mount in mounts if mount.point == "/proc"][-1:]
    hides = {each for mount in shown for each in mount.options if each.startswith("hidepid=")}
    is_proc = [mount.kind for mount in shown] == ["proc"]
    return is_proc and hides <= {"hidepid=0", "hidepid=off"} and own_numbers == [own_pid]


def container(mounts: list[Mount], *, by_an_engine: bool) -> str | None:
    """By what the kubelet or the engine has mounted into it; none outside of containers, and where it is not clear."""
    ours = {found.groups() for mount in mounts if (found := OF_THE_KUBELET.search(mount.root))}
    if ours:
        return "pod {} container {}".format(*ours.pop()) if len(ours) == 1 else None
    roots = [mount for mount in mounts if mount.point == "/" and mount.kind == "overlay"]
    layers = [each.removeprefix("upperdir=") for root in roots for each in root.options if each.startswith("upperdir=")]
    return f"layer {layers[0]}" if by_an_engine and len(layers) == 1 else None


def _container_run(mounts: list[Mount]) -> int | None:
    """Only where this process stands at the root of its control groups, as the container's first one does: whoever
    makes more of them inside, or shows us the machine's, is not understood."""
    points = [mount.point for mount in mounts if mount.kind == "cgroup2" and mount.root == "/"]
    stands_there = "0::/" in procfs.cgroup_of(os.getpid()).splitlines()
    return os.stat(points[0]).st_ino if stands_there and len(points) == 1 else None  # noqa: PTH116


def _above(process: procfs.Stat) -> list[ProcessIdentity]:
    found: list[ProcessIdentity] = []
    while process.parent != 0 and (parent := procfs.stat_of(process.parent)) is not None:
        found.append(parent.identity)
        process = parent
    return found

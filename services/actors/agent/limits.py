"""What an agent may use: the operator's limits, lowered by the client's, as the kernel and the watcher take them."""

import resource
from pathlib import Path

from windlass.services.actors.subprocess.watcher import MEGABYTE
from windlass.shared.actors.payloads import AgentLimits as WantedLimits
from windlass.shared.process.procfs import threads_of
from windlass.shared.toml_tables import AgentLimits

OPEN_FILES = 4096
SECONDS_FROM_XCPU_TO_KILL = 2
ROOM_FOR_OTHERS = 4


def lowered(configured: AgentLimits, wanted: WantedLimits | None) -> AgentLimits:
    """The smaller of both where both say something; nobody can raise what the operator has set."""
    if wanted is None:
        return configured
    asked = wanted.model_dump(exclude_none=True)
    given = configured.model_dump(exclude_none=True)
    return configured.model_copy(update={name: min(asked[name], given.get(name, asked[name])) for name in asked})


def for_the_kernel(limits: AgentLimits, *, user: int) -> dict[str, tuple[int, int]]:
    """Soft and hard limits of each process of that user, by their names in the module `resource`.

    Memory is limited by the size of the data (the heap, and private mappings that can be written to) and not of the
    address space, RLIMIT_AS: Node, Go, Java and others reserve many gigabytes of addresses that they never use.
    """
    found = {"RLIMIT_CORE": (0, 0), "RLIMIT_NOFILE": (OPEN_FILES, OPEN_FILES)}
    if limits.memory_mb is not None:
        found["RLIMIT_DATA"] = (limits.memory_mb * MEGABYTE, limits.memory_mb * MEGABYTE)
    if limits.cpu_seconds is not None:
        found["RLIMIT_CPU"] = (limits.cpu_seconds, limits.cpu_seconds + SECONDS_FROM_XCPU_TO_KILL)
    if limits.file_mb is not None:
        found["RLIMIT_FSIZE"] = (limits.file_mb * MEGABYTE, limits.file_mb * MEGABYTE)
    if limits.processes is not None and user != 0:
        # The kernel counts the user's threads everywhere, Windlass' own and other agents' too, and root's not at all.
        # So this only keeps a fork bomb from growing faster than the watcher, which counts exactly, can look.
        room = threads_of(user) + ROOM_FOR_OTHERS * limits.processes
        found["RLIMIT_NPROC"] = (room, room)
    return {name: limit for name, limit in found.items() if hasattr(resource, name)}


def for_the_watcher(limits: AgentLimits, *, own_processes: int, place: Path) -> dict[str, int | str | None]:
    """Of everything together: all processes, and all that is in the place where they work."""
    return {**limits.model_dump(), "own_processes": own_processes, "place": str(place)}

"""The watcher: looks a few times a second what an agent's whole tree uses, and says when it is more than it may."""

import time

from windlass.services.actors.subprocess.footprint import Footprint
from windlass.services.actors.subprocess.tree import Usage, usage_below
from windlass.shared.process.procfs import data_bytes, fair_sum_bytes, shared_bytes

WATCH_SECONDS = 0.1
MEGABYTE = 2**20
SUMS_THAT_AGREE = 3
AFTER_THE_KERNEL_SECONDS = 0.5
"""One process that has used up its time is told so by the kernel; we only come for many, or for one that is deaf."""


class Watcher:
    """The kernel's own limits hold for each process alone; an agent may have many.

    `own_processes` is how many of them are the sandbox's and not the agent's, `place` the directory that it works in.
    """

    def __init__(
        self,
        keeper_pid: int,
        *,
        memory_mb: int | None = None,
        cpu_seconds: int | None = None,
        processes: int | None = None,
        own_processes: int = 0,
        place: str | None = None,
        file_mb: int | None = None,
        files: int | None = None,
    ) -> None:
        self._keeper_pid = keeper_pid
        self._memory_bytes = None if memory_mb is None else memory_mb * MEGABYTE
        self._cpu_seconds = cpu_seconds
        self._processes = None if processes is None else processes + own_processes
        self._footprint = (
            Footprint(place, most_bytes=None if file_mb is None else file_mb * MEGABYTE, most_files=files)
            if place is not None and (file_mb, files) != (None, None)
            else None
        )
        limits = (self._memory_bytes, self._cpu_seconds, self._processes, self._footprint)
        self._has_limits = any(each is not None for each in limits)
        self._due_at = 0.0
        self.largest_data_bytes = 0

    def look(self) -> str | None:
        """The name of the limit that is exceeded, if it is time to look and one is."""
        if not self._has_limits or time.monotonic() < self._due_at:
            return None
        usage = usage_below(self._keeper_pid)
        self._due_at = time.monotonic() + WATCH_SECONDS
        # Before anything that looks at each process: a fork bomb has many.
        if self._processes is not None and len(usage.pids) > self._processes:
            return "processes"
        if self._cpu_seconds is not None and usage.cpu_seconds > self._cpu_seconds + AFTER_THE_KERNEL_SECONDS:
            return "cpu_seconds"
        if self._memory_bytes is not None and self._has_too_much(usage, self._memory_bytes):
            return "memory_mb"
        return self._footprint.look(usage.pids) if self._footprint else None

    def look_at_what_is_left(self) -> str | None:
        """The name of the limit that is exceeded by what nobody can add to any more."""
        return self._footprint.look_once_more() if self._footprint else None

    def _has_too_much(self, usage: Usage, limit_bytes: int) -> bool:
        self.largest_data_bytes = max([self.largest_data_bytes, *map(data_bytes, usage.pids)])
        # Pages that a fork shares are counted once for each process. The fair share takes the kernel long to say, so it
        # is asked for only now.
        at_most = usage.resident_bytes + shared_bytes(usage.pids)
        return at_most > limit_bytes and self._has_too_much_in_fairness(limit_bytes)

    def _has_too_much_in_fairness(self, limit_bytes: int) -> bool:
        """Whether every one of a few sums says so: each is taken over many moments, and who forks or ends between two
        of them is counted with pages that another had before."""
        return all(fair_sum_bytes(usage_below(self._keeper_pid).pids) > limit_bytes for _ in range(SUMS_THAT_AGREE))

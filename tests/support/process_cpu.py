"""The CPU time of a process, which a busy machine does not change as it does the time on the clock."""

from pathlib import Path


class ProcessCpu:
    """Of the thread that runs its event loop."""

    def __init__(self, pid: int) -> None:
        self._schedstat = Path(f"/proc/{pid}/task/{pid}/schedstat")

    def seconds(self) -> float:
        return int(self._schedstat.read_text().split()[0]) / 1e9

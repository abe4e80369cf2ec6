"""Named places at which a drill may kill the worker: armed by a file of that name, which is spent by the kill."""

import os
import signal

from windlass.shared.settings import Settings

FAILPOINTS = (
    "media-intended",
    "media-ordered",
    "media-job-known",
    "media-job-done",
    "media-downloaded",
    "media-file-kept",
    "media-contents-kept",
    "webhook-before-sending",
    "webhook-answered",
)


class Failpoints:
    """Only where `WINDLASS_PROBE_FAULTS` is set; elsewhere reaching one costs nothing."""

    def __init__(self, settings: Settings) -> None:
        self._directory = settings.data_dir / "failpoints" if settings.probe_faults else None

    def reach(self, name: str) -> None:
        assert name in FAILPOINTS
        if self._directory is not None and (self._directory / name).exists():
            (self._directory / name).unlink()
            os.kill(os.getpid(), signal.SIGKILL)

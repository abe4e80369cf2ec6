"""What an attempt has said since its last report: its latest progress and checkpoint, all output, what was spent."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from windlass.services.actors.worker.context.unreported_output import UnreportedOutput
from windlass.shared.scrubbing import withhold
from windlass.shared.storable import storable
from windlass.shared.store.tasks import Claimed, Report
from windlass.shared.usage import added, figures_in

log = logging.getLogger("actors")


class Unreported:
    """Added to by the actor's threads, taken by the writer's. `announce` is called once for each report, however much
    is said until it is taken: to be heard wakes another thread."""

    def __init__(
        self, task: Claimed, *, announce: Callable[[], None], most_output_bytes: int, most_event_bytes: int
    ) -> None:
        self._task = task
        self._announce = announce
        self.began = time.monotonic()
        self._lock = threading.Lock()
        self._is_announced = False
        self._progress: dict[str, Any] | None = None
        self._checkpoint: Any = None
        self._output = UnreportedOutput(most_bytes=most_output_bytes, most_event_bytes=most_event_bytes)
        self._spent: dict[str, float] = {}
        self._reports = 0

    @property
    def spent(self) -> dict[str, float] | None:
        """None when nobody said."""
        return self._spent or None

    def progress(self, message: str, percent: float | None) -> None:
        elapsed_ms = round((time.monotonic() - self.began) * 1000)
        now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        with self._lock:
            self._progress = {"elapsed_ms": elapsed_ms, "message": message, "percent": percent, "updated_at": now}
        self._tell()

    def output(self, text: str, stream: str | None) -> None:
        with self._lock:
            is_kept = self._output.add(text, stream)
        if is_kept:
            self._tell()

    def save(self, checkpoint: Any) -> None:
        with self._lock:
            self._checkpoint = checkpoint
        self._tell()

    def usage(self, figures: Mapping[str, Any]) -> None:
        """A figure that cannot be right is left out: the work is worth no less."""
        good, faults = figures_in(figures)
        if faults:
            log.warning("task %s: its usage is not as it should be: %s", self._task.task_id, "; ".join(faults))
        with self._lock:
            self._spent = added(self._spent, good)
        if good:
            self._tell()

    def take(self) -> Report | None:
        """Everything said since the last time, or none when nothing was."""
        with self._lock:
            self._is_announced = False
            progress, checkpoint, output = self._progress, self._checkpoint, self._output.take()
            usage = self._spent or None
            self._progress, self._checkpoint, self._spent = None, None, {}
            if progress is None and checkpoint is None and not output and usage is None:
                return None
            self._reports += 1
            number = self._reports
        progress, checkpoint = withhold(storable(progress)), withhold(storable(checkpoint))
        events = output.as_events()
        if progress is not None:
            events.append({"type": "progress", "data": {"status": "running", "progress": progress}})
        task = self._task
        return Report(task.task_id, task.attempt, task.claim_token, number, progress, checkpoint, events, usage)

    def _tell(self) -> None:
        with self._lock:
            if self._is_announced:
                return
            self._is_announced = True
        self._announce()

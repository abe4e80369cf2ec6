"""How a worker goes: it takes nothing new, lets the running work end or stops it, hands it back, and says good-bye."""

import logging
import os
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NoReturn

from windlass.services.actors.stop_wish import StopWish
from windlass.services.actors.worker.attempts import Attempts
from windlass.services.actors.worker.dramatiq_worker import DeskWorker
from windlass.services.actors.worker.executor import Executor
from windlass.services.actors.worker.leases.heartbeat import Heartbeat
from windlass.services.actors.worker.loner import Loner
from windlass.services.actors.worker.writing.writer import Writer
from windlass.shared import db, tracing
from windlass.shared.errors import words_of
from windlass.shared.settings import Settings
from windlass.shared.store.operating import workers

log = logging.getLogger("actors")

LEAVE_SECONDS = 2.0


class Departure:
    def __init__(
        self,
        settings: Settings,
        worker_id: str,
        guardian_pid: int,
        *,
        stop_wish: StopWish,
        executor: Executor,
        attempts: Attempts,
        writer: Writer,
        worker: DeskWorker | Loner,
        heartbeat: Heartbeat,
    ) -> None:
        self._settings = settings
        self._worker_id = worker_id
        self._guardian_pid = guardian_pid
        self._stop_wish = stop_wish
        self._executor = executor
        self._attempts = attempts
        self._writer = writer
        self._worker = worker
        self._heartbeat = heartbeat

    def go(self, exit_code: int) -> NoReturn:
        log.info("stopping: %s", self._stop_wish.reason)
        self._take_nothing_new()
        self._drain(self._drain_seconds())
        self._attempts.stop_all()
        self._wait_for_attempts(self._settings.stop_grace_seconds)
        if left := len(self._attempts):
            log.error("%d attempts did not stop; the guardian ends them with this process", left)
        else:
            self._stop_consuming()
        self._heartbeat.stop()
        self._leave("stopped")
        self._writer.close(timeout=self._settings.stop_grace_seconds)
        tracing.stop()
        log.info("worker %s stopped", self._worker_id)
        logging.shutdown()
        # Threads that still hang in a system call must not hold up the exit: the guardian buries what is left.
        os._exit(exit_code)

    def _take_nothing_new(self) -> None:
        self._executor.closed = True
        self._writer.stop_asking(timeout=self._settings.stop_grace_seconds / 2)
        self._leave("stopping")

    def _leave(self, state: str) -> None:
        """By the connections that are open: a process without descriptors cannot open another."""
        reason = self._stop_wish.reason or ""
        try:
            self._writer.call(
                lambda pool: workers.leave(pool, self._worker_id, state=state, reason=reason),
                patience_seconds=LEAVE_SECONDS,
            )
        except db.AWAY_OR_BUSY as error:
            log.warning("could not say that this worker is %s (%s)", state, words_of(error))

    def _stop_consuming(self) -> None:
        """Whatever RabbitMQ's client meets on its way out (no descriptors, a connection that is half closed): all has
        been handed back, and the good-bye that follows tells why this worker went."""
        try:
            self._worker.stop(timeout=round(self._settings.stop_grace_seconds * 1000))
        except Exception:
            log.exception("the desk did not close in order; it goes with this process")

    def _drain_seconds(self) -> float:
        """Time for the work to end by itself; none when this process must go or nobody guards it any more."""
        condemned = (self._stop_wish.reason or "").startswith("condemned")
        return 0.0 if condemned or os.getppid() != self._guardian_pid else self._settings.drain_seconds

    def _drain(self, seconds: float) -> None:
        """Lets what runs come to its end, unless somebody is in a hurry."""
        if (running := len(self._attempts)) and seconds > 0 and not self._stop_wish.is_hurried:
            until = datetime.now().astimezone() + timedelta(seconds=seconds)
            what = "1 task runs: it" if running == 1 else f"{running} tasks run: they"
            told = "%s may end until %s and %s handed back then; told again, at once"
            log.info(told, what, f"{until:%H:%M:%S}", "is" if running == 1 else "are")
        self._wait_for_attempts(seconds, unless=lambda: self._stop_wish.is_hurried)
        if (left := len(self._attempts)) and self._stop_wish.is_hurried:
            log.info("told again: handing %d back at once", left)

    def _wait_for_attempts(self, seconds: float, *, unless: Callable[[], bool] = lambda: False) -> None:
        until = time.monotonic() + seconds
        while len(self._attempts) and time.monotonic() < until and not unless():
            time.sleep(0.02)

"""The heartbeat: a thread with a loop and a connection of its own, so that no actor can hold it up."""

import asyncio
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from uuid import UUID

from windlass.services.actors.worker.attempts import Attempts
from windlass.services.actors.worker.clock import boot_time
from windlass.services.actors.worker.leases.lease_watch import LeaseWatch
from windlass.shared import db
from windlass.shared.process import log_context
from windlass.shared.settings import Settings
from windlass.shared.store.operating import wishes, workers

log = logging.getLogger("actors.heartbeat")

WATCH_SECONDS = 0.25
IDLE_WATCH_SECONDS = 1.0
SOONER_AFTER_SKIPPING = 4
"""So much sooner comes the next beat when a row was locked: mostly it was one of our own calls, and over at once."""


class Heartbeat:
    """Renews all leases of the process in one call, brings back cancels, and watches for work that ignores its stop."""

    def __init__(
        self,
        settings: Settings,
        worker_id: str,
        attempts: Attempts,
        *,
        watch: LeaseWatch,
        condemn: Callable[[str], None],
        drain: Callable[[str], None],
        look_at_the_loop: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._worker_id = worker_id
        self._attempts = attempts
        self._lease_watch = watch
        self._condemn = condemn
        self._drain = drain
        self._look_at_the_loop = look_at_the_loop
        self._is_wished_for = False
        self._renewed_at = self._watched_at = boot_time()
        self._loop = asyncio.new_event_loop()
        self._serving: asyncio.Task[None]
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._listener = db.Listener(
            settings,
            "heartbeat",
            {
                "windlass_cancel": self._cancel_requested,
                "windlass_callback": self._called_back,
                wishes.CHANNEL: self._wished,
            },
            beat=self._beat,
            patience_seconds=settings.heartbeat_seconds,
            longest_pause_seconds=min(0.5, settings.heartbeat_seconds),
        )

    def start(self) -> None:
        self._watched_at = boot_time()
        self._thread.start()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._serving.cancel)
        self._thread.join(2)

    def seconds_since_renewal(self) -> float:
        return boot_time() - self._renewed_at

    def is_watching(self) -> bool:
        """Whether its loop goes round, with or without Postgres; one that has not been started is not late."""
        return not self._thread.ident or (
            self._thread.is_alive() and boot_time() - self._watched_at < 5 * IDLE_WATCH_SECONDS
        )

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._serving = self._loop.create_task(self._serve())
        with suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._serving)

    async def _serve(self) -> None:
        await asyncio.gather(self._listener.run(), self._keep_watch())

    def _cancel_requested(self, worker_id: str) -> None:
        if worker_id in {self._worker_id, "*"}:
            self._listener.beat_now()

    def _called_back(self, task_id: str) -> None:
        self._attempts.nudge(None if task_id == "*" else UUID(task_id))

    def _wished(self, payload: str) -> None:
        """An operator wants something of a worker; what, is asked with the next beat."""
        word, _, about = payload.partition(" ")
        if word == wishes.KILL:
            self._die_in_a_drill(about)
        elif payload in {self._worker_id, "*"}:
            self._is_wished_for = True
            self._listener.beat_now()

    def _die_in_a_drill(self, of_whom: str) -> None:
        """As by an accident, in the middle of it; not once the task is over."""
        runs = {f"{self._worker_id} {task_id}" for task_id in self._attempts.leases().values()}
        if of_whom in runs and self._settings.probe_faults:
            os.kill(os.getpid(), signal.SIGKILL)

    async def _heed(self, connection: db.Database) -> None:
        self._is_wished_for = False
        if (wish := await wishes.drain_wish(connection, self._worker_id)) is not None:
            self._drain("drained" if wish.reason is None else f"drained: {wish.reason}")

    async def _beat(self, connection: db.Database) -> float:
        """Renews, and returns how long to wait until the next time."""
        if self._is_wished_for:
            await self._heed(connection)
        sent_at = boot_time()
        rows = await workers.renew(connection, self._worker_id, self._attempts.leases(), self._settings.lease_seconds)
        self._renewed_at = sent_at
        renewed = [row.claim_token for row in rows if row.owned]
        self._lease_watch.renewed(renewed, sent_at + self._settings.lease_seconds)
        for row in rows:
            is_lost = not row.owned and not row.skipped
            if row.cancel_requested or is_lost:
                self._attempts.stop(row.claim_token, "cancelled" if row.cancel_requested else "lost")
            if is_lost:
                self._lease_watch.let_go(row.claim_token)
        skipped = any(row.skipped for row in rows)
        return self._settings.heartbeat_seconds / (SOONER_AFTER_SKIPPING if skipped else 1)

    async def _keep_watch(self) -> None:
        """Beside the beats, one of which may hang: looks for overdue leases, whether the actors' loop goes round, and
        for work that does not listen."""
        while True:
            await asyncio.sleep(WATCH_SECONDS if len(self._attempts) else IDLE_WATCH_SECONDS)
            self._watched_at = boot_time()
            self._stop_in_time()
            self._look_at_the_loop()
            for context in self._attempts.deaf(self._settings.stop_grace_seconds):
                with log_context.about(task_id=context.task_id, attempt=context.task.attempt):
                    is_late = context.deadline + self._settings.stop_grace_seconds < time.monotonic()
                    reason = (
                        workers.hung_reason(context.task_id) if is_late else f"task {context.task_id} does not stop"
                    )
                    self._condemn(reason)

    def _stop_in_time(self) -> None:
        """Without Postgres, work stops before its lease does: somebody else may start it then. An attempt whose row
        alone could not be renewed stops alone."""
        settings = self._settings
        silent_for = boot_time() - self._renewed_at
        spare = 2 * settings.stop_grace_seconds + settings.lease_margin_seconds
        for claim_token in self._lease_watch.left_behind(boot_time() + spare):
            if context := self._attempts.stop(claim_token):
                with log_context.about(task_id=context.task_id, attempt=context.task.attempt):
                    log.warning("task %s: stopping it, for somebody keeps its row locked", context.task_id)
        if silent_for > 2 * settings.heartbeat_seconds and not self._attempts.any_work():
            self._lease_watch.nothing_runs()
        elif silent_for > settings.lease_seconds - spare and self._attempts.any_work():
            log.warning("stopping %d attempts: their leases cannot be renewed", len(self._attempts))
            self._attempts.stop_all()

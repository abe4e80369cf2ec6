"""The loner: in the place of Dramatiq's worker, where tasks run one at a time with nobody beside them."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import dramatiq
from dramatiq.middleware import MiddlewareError, SkipMessage

from windlass.services.actors.worker.mirror import StateMirror
from windlass.shared import db

log = logging.getLogger("actors")

LOOK_SECONDS = 0.25
IDLE_SECONDS = 10.0
"""Without work for so long it leaves; a suspect that comes later costs the start of another process."""


class Loner:
    """A thread that looks for the next task that was rung for and must run alone, and runs it to its end.

    It takes no messages: a message has no say in who gets it, and the others would not wait for this one.
    """

    def __init__(
        self,
        mirror: StateMirror,
        run: Mapping[str, Callable[[str], None]],
        *,
        find: Callable[[], tuple[UUID, str] | None],
        on_idle: Callable[[], None],
    ) -> None:
        self._mirror = mirror
        self._run = run
        self._find = find
        self._on_idle = on_idle
        self._stopping = threading.Event()
        self._busy_at = time.monotonic()
        self._thread = threading.Thread(target=self._serve, name="loner", daemon=True)

    def start(self) -> None:
        self._busy_at = time.monotonic()
        self._thread.start()

    def stop(self, timeout: int) -> None:
        """Within so many milliseconds, as Dramatiq's worker."""
        self._stopping.set()
        self._thread.join(timeout / 1000)

    def lives(self) -> bool:
        return self._thread.is_alive()

    def _serve(self) -> None:
        while not self._stopping.is_set():
            if self._take_one():
                self._busy_at = time.monotonic()
            elif time.monotonic() - self._busy_at > IDLE_SECONDS:
                self._on_idle()
                return
            else:
                self._stopping.wait(LOOK_SECONDS)

    def _take_one(self) -> bool:
        """Whether there was one, and it has run."""
        try:
            found = self._find()
        except db.AWAY_OR_BUSY as error:
            log.warning("looking again for what must run alone (%s)", error or type(error).__name__)
            self._busy_at = time.monotonic()  # nobody knows whether it is needed
            return False
        return found is not None and self._attempt(*found)

    def _attempt(self, task_id: UUID, actor: str) -> bool:
        message: Any = dramatiq.MessageProxy(dramatiq.Message("", actor, (str(task_id),), {}, {}))
        broker: Any = None
        try:
            self._mirror.before_process_message(broker, message)
        except SkipMessage:
            return False  # somebody else was quicker, or its provider has no slot: the dispatcher rings in time
        except MiddlewareError as error:
            log.warning("%s; trying again soon", error)
            return False
        try:
            self._run[actor](str(task_id))
        except BaseException as error:  # noqa: BLE001 - recorded as the attempt's end
            self._mirror.after_process_message(broker, message, exception=error)
        else:
            self._mirror.after_process_message(broker, message)
        return True

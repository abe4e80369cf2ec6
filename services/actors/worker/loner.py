"""The loner: in the place of Dramatiq's worker, where tasks run one at a time with nobody beside them."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from uuid import UUID

from uuid_utils.compat import uuid4

from windlass.services.actors.worker.executor import Actor, Executor, Running
from windlass.shared import db
from windlass.shared.errors import words_of
from windlass.shared.store.tasks import Claim, Claimed, Refused

log = logging.getLogger("actors")

LOOK_SECONDS = 0.25
IDLE_SECONDS = 10.0
"""Without work for so long it leaves; a suspect that comes later costs the start of another process."""


class Loner:
    """A thread that looks for the next task that must run alone, and runs it to its end.

    What needs no thread (`run_async` says so, and begins it) it waits for.

    It takes no messages: a message has no say in who gets it, and the others would not wait for this one.
    """

    def __init__(
        self,
        executor: Executor,
        actors: Mapping[str, Actor],
        *,
        run_async: Callable[[str, Running], bool],
        find: Callable[[], tuple[UUID, str] | None],
        claim: Callable[[Claim], tuple[Claimed | Refused, float]],
        on_idle: Callable[[], None],
    ) -> None:
        self._executor = executor
        self._actors = actors
        self._run_async = run_async
        self._find = find
        self._claim = claim
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
            log.warning("looking again for what must run alone (%s)", words_of(error))
            self._busy_at = time.monotonic()  # nobody knows whether it is needed
            return False
        return found is not None and self._attempt(*found)

    def _attempt(self, task_id: UUID, actor: str) -> bool:
        """To its end, and to the answer to that: the next one must not find it beside itself."""
        answer, lease_end = self._claim(Claim(task_id, uuid4()))
        if not isinstance(answer, Claimed):
            return False  # somebody else was quicker, or its provider has no slot
        return self._run(self._executor.grant(answer, lease_end), actor)

    def _run(self, running: Running, actor: str) -> bool:
        """Returns false for an attempt that is handed back."""
        is_over = threading.Event()
        running.on_answered = is_over.set
        if self._run_async(actor, running):
            is_over.wait()
            return True
        if not self._executor.take_up(running):
            is_over.wait()
            return False
        exception: BaseException | None = None
        try:
            self._executor.run(running, self._actors[actor])
        except BaseException as error:  # noqa: BLE001 - recorded as the attempt's end
            exception = error
        self._executor.end(running, exception)
        is_over.wait()
        return True

"""Who looks after the actors' loop: one that is stuck is given up with its culprit, for the sake of the others."""

import logging
from collections.abc import Callable

from windlass.services.actors.worker.calls import Calls
from windlass.services.actors.worker.coroutines.loop_watch import LoopWatch, Stuck
from windlass.services.actors.worker.coroutines.runner import LoopRunner
from windlass.shared.process import log_context
from windlass.shared.store.operating.workers import stuck_reason

log = logging.getLogger("actors.loop")


class LoopGuard:
    """Asked to look by the heartbeat's thread, again and again."""

    def __init__(
        self, calls: Calls, runner: LoopRunner, *, grace_seconds: float, condemn: Callable[[str], None]
    ) -> None:
        self._calls = calls
        self._runner = runner
        self._grace_seconds = grace_seconds
        self._condemn = condemn
        self._watch: LoopWatch | None = None
        self._is_given_up = False

    def look(self) -> None:
        """While nobody is on the loop, nobody can be held up."""
        if self._is_given_up or not len(self._runner):
            return
        if self._watch is None:
            self._watch = LoopWatch(self._calls.loop, self._calls.thread_id, grace_seconds=self._grace_seconds)
        if stuck := self._watch.look():
            self._is_given_up = True
            self._give_up(stuck)

    def _give_up(self, stuck: Stuck) -> None:
        """Whoever holds it up is left to the guardian, as one who does not stop. The others cannot go on, and have done
        nothing wrong."""
        task_id = self._runner.of(stuck.culprit)
        reason = "the actors' event loop does not go on" if task_id is None else stuck_reason(task_id)
        with log_context.about(**({} if task_id is None else {"task_id": task_id})):
            log.error("%s: it is in %s", reason, stuck.where)
            self._condemn(reason)
        self._runner.hand_back_all_but(stuck.culprit)

"""The kill ladder: TERM to the agent's group, a grace, KILL to everything, and the proof that nothing is left."""

import os
import signal
import time
from contextlib import suppress
from typing import Any

from windlass.services.actors.subprocess.run import Run
from windlass.services.actors.subprocess.signals import Notes, group_of, kill, now
from windlass.shared.process.procfs import ProcessIdentity, descendants, direct_children

SETTLE_SECONDS = 0.2
"""What an agent that has ended by itself leaves behind for a moment: a sandbox, the rest of a pipeline."""

STEP_SECONDS = 0.01
EMPTY_LOOKS = 3
"""Where no keeper can say it: a process that forks while we look could escape one look, but not several."""


class Ladder:
    """For one run. While it waits, output is still read: an agent that says good-bye must not block on a full pipe."""

    def __init__(
        self,
        run: Run,
        *,
        sandboxed: bool,
        grace_seconds: float,
        guardian_pid: int | None,
        called: str = "agent",
    ) -> None:
        """`called` is the process' name in the proof."""
        self._run = run
        self._called = called
        self._sandboxed = sandboxed
        self._grace_seconds = grace_seconds
        self._guardian_pid = guardian_pid
        self._notes = Notes()

    def clear(self, reason: str) -> dict[str, Any] | None:
        """Returns when nothing of the run lives any more, with the proof if anything had to be done to it."""
        run = self._run
        if run.has_ended:
            self._wait(SETTLE_SECONDS)
        # Over its limits, the keeper is ending it already: in a grace it would only use still more.
        if run.agent_pid is not None and run.exceeded is None and not self._is_done():
            self._terminate()
            self._wait(self._grace_seconds)
        self._kill()
        if not run.none_left:
            self._end_strays()
        signals = [*self._notes.entries, *run.signals]
        if run.none_left and not signals:
            return None
        proof = {"reason": reason, "keeper": run.keeper.pid, self._called: run.agent_pid, "signals": signals}
        return {**proof, **({} if run.none_left else {"keeper_was_killed": True}), "none_left_at": now()}

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._is_done() and self._run.exceeded is None and (left := until - time.monotonic()) > 0:
            self._run.pump(left)

    def _is_done(self) -> bool:
        return self._run.none_left or self._run.keeper_is_gone

    def _terminate(self) -> None:
        """The group hears it at once; those who have left the group hear it one by one."""
        below = self._living()
        group, spared = self._group()
        elsewhere = [each for each in below if each.pid not in spared and group_of(each.pid) != group]
        told = [each.pid for each in below if group_of(each.pid) == group]
        if group is not None and told:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGTERM)
        told += [each.pid for each in elsewhere if each.send(signal.SIGTERM)]
        self._notes.add(signal.SIGTERM, told)

    def _group(self) -> tuple[int | None, set[int]]:
        """The group that the agent began in, and the processes that TERM would only make a KILL of.

        The sandbox's outer process ends everything inside when it ends. The inner one leads the agent's group and, as
        the first of its process numbers, takes no notice of a TERM.
        """
        agent = self._run.agent_pid
        if agent is None or not self._sandboxed:
            return agent, set()
        inner = [each.pid for each in direct_children(agent) if group_of(each.pid) == each.pid]
        return (inner[0], {agent}) if inner else (None, set())

    def _kill(self) -> None:
        while not self._is_done():
            kill(self._living(), self._notes, spare=self._run.keeper.pid)
            # An agent outside a sandbox can freeze its keeper, which then collects nobody.
            self._run.keeper.send_signal(signal.SIGCONT)
            self._run.pump(STEP_SECONDS)

    def _living(self) -> list[ProcessIdentity]:
        return [each for each in descendants(self._run.keeper.pid) if each.is_running()]

    def _end_strays(self) -> None:
        """Orphans of a dead keeper are the guardian's children, where nothing else lives but this worker."""
        empty = 0
        while empty < EMPTY_LOOKS:
            strays = self._strays()
            kill(strays, self._notes)
            empty = 0 if strays else empty + 1
            self._run.pump(STEP_SECONDS)

    def _strays(self) -> list[ProcessIdentity]:
        """None once the guardian is gone: what lives beside us then may be anybody's."""
        if self._guardian_pid is None or os.getppid() != self._guardian_pid:
            return []
        orphans = [each for each in direct_children(self._guardian_pid) if each.pid != os.getpid()]
        return [each for each in (*orphans, *descendants(*(each.pid for each in orphans))) if each.is_running()]

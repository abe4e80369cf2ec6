"""The keeper: a small process that one agent runs below, and that everything which the agent ever starts stays below.

An attempt of an isolated actor does so, too: what is said of agents here goes for both.

It becomes the one to whom orphans fall, starts the command under its limits, watches that all of it together stays
within them, and says over its socket how it ended and when nothing is left. Only the kernel can say the latter without
a race: a process that orphans fall to and that has no child has no descendant either.
"""

import json
import os
import resource
import signal
import socket
import sys
from contextlib import suppress
from typing import Any, NoReturn

from windlass.services.actors.subprocess import system_calls
from windlass.services.actors.subprocess.outside import WayOut
from windlass.services.actors.subprocess.signals import Notes, kill
from windlass.services.actors.subprocess.watcher import WATCH_SECONDS, Watcher
from windlass.shared.process import kernel
from windlass.shared.process.procfs import ProcessIdentity, descendants, volunteer_to_go

NICENESS = 5
"""A hundred busy processes must not take the worker's turn to renew its leases."""

FIRST_TO_GO = 500
"""Where the machine's memory ends, the kernel takes an agent before it takes Windlass."""

WORKER_IS_GONE = signal.SIGUSR1
"""From the kernel, when the worker dies. Nothing of the agent is left behind then, though nobody may be there to adopt
it: the guardian can have died as well."""

STEP_SECONDS = 0.01
START_FAILED = 127


def main() -> None:
    """Arguments: the number of the socket, and of the worker, without whom it does not live."""
    control, worker_pid = socket.socket(fileno=int(sys.argv[-2])), int(sys.argv[-1])
    kernel.keep_private()
    control.set_inheritable(False)
    kernel.die_with_parent(worker_pid, signal.SIGKILL)
    kernel.adopt_orphans()
    _go_first()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD, WORKER_IS_GONE])
    with control.makefile("r") as orders:
        order = json.loads(orders.readline())
    keeper_pid = os.getpid()
    watcher = Watcher(keeper_pid, **order["watch"])
    way_out = WayOut(order["way_out"]) if order["way_out"] else None
    agent = os.fork()
    if agent == 0:
        _become_the_agent(order, keeper_pid, control, way_out)
    kernel.die_with_parent(worker_pid, WORKER_IS_GONE)  # until now there was nothing to be left behind
    _let_go_of_the_pipes()
    if order["handed_over"] is not None:
        os.close(order["handed_over"])
    try:
        keeper = Keeper(control, agent, watcher, way_out)
        if way_out is not None and (problem := way_out.open()) is not None:
            keeper.give_up(f"its network could not be made: {problem}")
        keeper.keep()
    except (WorkerIsGone, BrokenPipeError, ConnectionResetError):
        end_everything()


class WorkerIsGone(Exception):
    """Nobody is there to be told how it ended."""


class Keeper:
    """After the start: collects who has ended, and looks at what the others use."""

    def __init__(self, control: socket.socket, agent: int, watcher: Watcher, way_out: WayOut | None) -> None:
        self._control = control
        self._agent = agent
        self._watcher = watcher
        self._way_out = way_out
        self._notes = Notes()
        self._exceeded: str | None = None
        tell(control, {"agent": agent})

    def give_up(self, reason: str) -> None:
        tell(self._control, {"failed": reason})
        self._kill_everything()

    def keep(self) -> None:
        """Returns when nothing is left."""
        while self._collect():
            if exceeded := self._watcher.look():
                self._exceeded = exceeded
                tell(self._control, {"exceeded": exceeded})
                self._kill_everything()
                return
            wait(WATCH_SECONDS)

    def _collect(self) -> bool:
        """Whether somebody is left."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                self._tell_the_end()
                return False
            if pid == 0:
                return True
            if pid == self._agent:
                if self._way_out is not None:
                    self._way_out.close()
                peaks = {"largest_kb": usage.ru_maxrss, "largest_data_bytes": self._watcher.largest_data_bytes}
                tell(self._control, {"status": status, **peaks})

    def _tell_the_end(self) -> None:
        left = None if self._exceeded else self._watcher.look_at_what_is_left()
        tell(self._control, {**({"exceeded": left} if left else {}), "none_left": True})

    def _kill_everything(self) -> None:
        """Here and not in the worker, which may not get a turn beside all of them."""
        first = ProcessIdentity.of(self._agent)
        if first is not None:  # with a sandbox's outer process the kernel ends all that is inside
            kill([first], self._notes)
        while self._collect():
            kill([each for each in descendants(os.getpid()) if each.is_running()], self._notes)
            tell(self._control, {"signals": self._notes.entries})
            wait(STEP_SECONDS)


def wait(seconds: float) -> None:
    """For the end of a child."""
    heard = signal.sigtimedwait([signal.SIGCHLD, WORKER_IS_GONE], seconds)
    if heard is not None and heard.si_signo == WORKER_IS_GONE:
        raise WorkerIsGone


def end_everything() -> None:
    """Also what is only being forked: whoever is left is our child in the end, and then we have none."""
    notes = Notes()
    while True:
        kill([each for each in descendants(os.getpid()) if each.is_running()], notes)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            signal.sigtimedwait([signal.SIGCHLD], STEP_SECONDS)
            continue
        return


def tell(control: socket.socket, news: dict[str, Any]) -> None:
    control.sendall(json.dumps(news).encode() + b"\n")


def _go_first() -> None:
    """Where we may: thousands of processes that fork would leave the keeper no time to end them. Where we may not,
    we are not root, and the kernel keeps them from becoming thousands. What we start is not favoured so."""
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def _let_go_of_the_pipes() -> None:
    """Their ends are the agent's alone, so that they are closed when the agent's last process is gone."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.close(nothing)


def _become_the_agent(
    order: dict[str, Any], keeper_pid: int, control: socket.socket, way_out: WayOut | None
) -> NoReturn:
    try:
        kernel.give_up_privacy()  # or the kernel would not let it say below that it goes first
        os.setsid()
        # Python ignores these two, and a program expects that they end it; the mask is that of the keeper.
        for signum in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(signum, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.nice(NICENESS)
        volunteer_to_go(FIRST_TO_GO)
        _change_hands(order["owner"], order["run_as"])
        kernel.die_with_parent(keeper_pid, signal.SIGKILL)  # a change of user would have cleared it
        os.chdir(order["directory"])
        for kind, (soft, hard) in order["limits"].items():
            _lower(getattr(resource, kind), soft, hard)
        if order["is_sandboxed"]:
            system_calls.hand_over()
        if way_out is not None:
            way_out.hand_over()
        os.execve(order["command"][0], order["command"], order["environment"])  # noqa: S606 - to become it is the point
    except BaseException as error:  # noqa: BLE001 - whatever it is, the worker hears of it
        tell(control, {"failed": f"{type(error).__name__}: {error}"})
    finally:
        os._exit(START_FAILED)


def _change_hands(owner: list[int] | None, run_as: list[int] | None) -> None:
    """The pipes become the agent's own, or it could not open /dev/stdout; and outside a sandbox, which does it itself,
    we become the account that it runs under."""
    if owner is not None:
        for descriptor in (0, 1, 2):
            os.fchown(descriptor, *owner)
    if run_as is not None:
        user, group = run_as
        os.setgroups([])
        os.setresgid(group, group, group)
        os.setresuid(user, user, user)


def _lower(kind: int, soft: int, hard: int) -> None:
    """Never above what the worker itself may use."""
    _, ceiling = resource.getrlimit(kind)
    most = hard if ceiling == resource.RLIM_INFINITY else min(hard, ceiling)
    resource.setrlimit(kind, (min(soft, most), most))

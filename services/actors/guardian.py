"""The guardian: starts one worker, and ends it with everything below it when its lease runs out or it dies.

It is small, has no threads and talks to nobody but its worker, so it goes on when the worker is frozen, stuck in C code
or cut off from Postgres.
"""

import json
import logging
import math
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from windlass.services.actors.quarantine import AT_ONCE, NO_LONGER_NEEDED, QUARANTINE, Quarantine, asked_for
from windlass.services.actors.worker.clock import boot_time
from windlass.shared import tracing
from windlass.shared.backoff import Backoff
from windlass.shared.process import kernel, log_context, logs
from windlass.shared.process.procfs import descendants
from windlass.shared.settings import Settings
from windlass.shared.settings.loading import WRONG_SETTINGS, settings_or_exit

log = logging.getLogger("guardian")

LONGEST_POLL_SECONDS = 3600.0
REMEMBERED = 8
PIDS_TO_TELL = 100
BURIAL_SECONDS = 1.0
ASKED_AGAIN_SECONDS = 1.0
"""One wish may come twice at once, to the process group and through a parent; what comes later is another one."""
NOT_NEEDED = "nothing is left to do"


@dataclass
class Ward:
    """The worker under guard: its process, the pipe it talks over, and when it has to be dead unless it renews.

    Over the pipe it says first who it is, and then, after every renewal, its new deadline; or that it was offered a
    task that must run alone.
    """

    process: subprocess.Popen[bytes]
    pipe: int
    deadline: float
    started_at: float = field(default_factory=time.monotonic)
    worker_id: str | None = None
    unfinished: bytes = b""
    asks_for_quarantine: bool = False

    def listen(self) -> bool:
        """Reads what the worker has said; false when it has closed the pipe."""
        chunk = os.read(self.pipe, 4096)
        *lines, self.unfinished = (self.unfinished + chunk).split(b"\n")
        for line in lines:
            if self.worker_id is None:
                self.worker_id = line.decode()
            elif line == QUARANTINE.encode():
                self.asks_for_quarantine = True
            else:
                self.deadline = float(line)
        return bool(chunk)


class Guardian:
    """Keeps one worker alive until it is told to stop; `worker` is the module that it runs.

    In quarantine, it runs what must run alone, until nothing is left.
    """

    def __init__(
        self, settings: Settings, *, worker: str = "windlass.services.actors.main", in_quarantine: bool = False
    ) -> None:
        self._settings = settings
        self._worker = worker
        self._company = "alone" if in_quarantine else "shared"
        self._quarantine = Quarantine(worker)
        self._drained = 0.0
        self._stop_signal: int | None = None
        self._stop_asked_at = 0.0
        self._ward: Ward | None = None
        self._buried: list[dict[str, Any]] = []
        self._signals, self._signalled = os.pipe()

    def run(self) -> None:
        kernel.adopt_orphans()
        os.set_blocking(self._signalled, False)
        signal.set_wakeup_fd(self._signalled)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._told_to_stop)
        signal.signal(AT_ONCE, self._told_to_stop)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        backoff = Backoff(first_seconds=0.2, longest_seconds=10, good_run_seconds=30)
        while self._stop_signal is None:
            ward = self._ward = self._start()
            reason = self._guard(ward)
            with log_context.about(worker=ward.worker_id):
                self._bury(ward, reason)
            if reason == NOT_NEEDED:
                break
            if ward.worker_id is None and ward.process.returncode == WRONG_SETTINGS:
                self._close_quarantine()
                raise SystemExit(WRONG_SETTINGS)
            if self._stop_signal is None:
                self._wait_for_signal(backoff.after(time.monotonic() - ward.started_at))
        self._close_quarantine()
        log.info("stopped")

    def _told_to_stop(self, number: int, _frame: object) -> None:
        """Asked again, or to do so at once, it lets the worker hand back what it has not finished."""
        now = time.monotonic()
        if self._stop_signal is None:
            self._stop_signal, self._stop_asked_at = number, now
        if number == AT_ONCE or now - self._stop_asked_at > ASKED_AGAIN_SECONDS:
            if self._ward is not None:
                self._ward.process.send_signal(AT_ONCE)
            self._quarantine.tell_to_close(at_once=True)

    def _start(self) -> Ward:
        ours, theirs = os.pipe()
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", self._worker),
                *(str(os.getpid()), str(theirs), self._company, *map(json.dumps, self._buried)),
            ],
            pass_fds=[theirs],
        )
        os.close(theirs)
        # Until it speaks it holds no lease; but one that never gets that far is not worth keeping.
        return Ward(process, ours, boot_time() + self._settings.start_seconds)

    def _guard(self, ward: Ward) -> str:
        """Returns when the worker is to be buried, and why."""
        poll = select.poll()
        poll.register(ward.pipe, select.POLLIN | select.POLLHUP)
        poll.register(self._signals, select.POLLIN)
        drained = math.inf
        while True:
            if self._stop_signal is not None and math.isinf(drained):
                drained = self._begin_to_drain(ward)
            if ward.process.poll() is not None:
                if ward.process.returncode == NO_LONGER_NEEDED:
                    return NOT_NEEDED
                told = self._stop_signal is not None
                return "told to stop" if told else f"it ended by itself ({_how(ward.process.returncode)})"
            left = min(ward.deadline, drained) - boot_time()
            if left <= 0:
                late = "did not stop in time" if drained <= ward.deadline else "did not renew its lease in time"
                return f"it {late}"
            for descriptor, _event in poll.poll(min(left, LONGEST_POLL_SECONDS) * 1000):
                if descriptor == self._signals:
                    os.read(self._signals, 512)
                    self._reap(sparing=ward.process.pid)
                elif not ward.listen():
                    poll.unregister(ward.pipe)
            if ward.asks_for_quarantine and self._stop_signal is None and self._quarantine.open():
                log.warning("a task that may have killed its workers is given a process of its own")
            ward.asks_for_quarantine = False

    def _begin_to_drain(self, ward: Ward) -> float:
        """Passes the stop on, and says until when the worker may take to hand everything back."""
        ward.process.send_signal(signal.SIGTERM)
        self._quarantine.tell_to_close()
        self._drained = boot_time() + self._settings.drain_seconds + 3 * self._settings.stop_grace_seconds
        return self._drained

    def _close_quarantine(self) -> None:
        """It was told when the worker was, if there was one, and takes hardly longer."""
        self._quarantine.tell_to_close()
        self._quarantine.wait_until_closed(self._drained - boot_time() + BURIAL_SECONDS)
        for process in descendants(os.getpid()):
            process.send(signal.SIGKILL)

    def _bury(self, ward: Ward, reason: str) -> None:
        """Kills the worker and all below it, and returns when none of it lives; the quarantine is not below it."""
        told = log.info if reason in {"told to stop", NOT_NEEDED} else log.warning
        told("worker %d: %s", ward.process.pid, reason)
        killed: dict[int, str] = {}
        while below := descendants(os.getpid(), without=self._quarantine.pid):
            # All are noted before the first is sent anything: with the worker its keepers die, and their agents.
            for process in [each for each in below if each.is_running()]:
                killed.setdefault(process.pid, _now())
            for process in below:
                process.send(signal.SIGKILL)
            self._reap()
            time.sleep(0.005)
        ward.process.poll()
        os.close(ward.pipe)
        # Proven dead: the next worker takes its tasks back at once instead of waiting for their leases.
        if ward.worker_id is not None:
            proof = {"by": "guardian", "reason": reason, "signals": _as_signals(killed), "none_left_at": _now()}
            self._buried = [*self._buried, {"worker_id": ward.worker_id, "proof": proof}][-REMEMBERED:]
        if killed:
            log.warning("worker %d: killed with %d processes in all; none is left", ward.process.pid, len(killed))

    def _reap(self, *, sparing: int | None = None) -> None:
        """Orphans are ours to collect; the worker's own end is for whoever waits for it to see."""
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if ended is None or ended.si_pid == sparing:
                    return
                if ended.si_pid == self._quarantine.pid:
                    self._quarantine.is_open()
                    continue
                os.waitpid(ended.si_pid, os.WNOHANG)
            except ChildProcessError:
                return

    def _wait_for_signal(self, seconds: float) -> None:
        ready, _, _ = select.select([self._signals], [], [], max(0.0, seconds))
        if ready:
            os.read(self._signals, 512)


def _as_signals(killed: dict[int, str]) -> list[dict[str, Any]]:
    """In the shape of every proof; the first of very many stand for all."""
    if not killed:
        return []
    entry = {"signal": "SIGKILL", "at": min(killed.values()), "pids": list(killed)[:PIDS_TO_TELL]}
    return [entry if len(killed) <= PIDS_TO_TELL else {**entry, "pids_in_all": len(killed)}]


def _now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def _how(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def main() -> None:
    kernel.keep_private()  # its worker inherits the environment with all secrets
    settings = settings_or_exit("database_url", "amqp_url")
    logs.start(settings, "guardian")
    tracing.check(settings)  # here, or it would start its worker again and again
    if quarantine := asked_for(sys.argv[1:]):
        belongs_to, worker = quarantine
        kernel.die_with_parent(belongs_to, signal.SIGTERM)
        Guardian(settings, worker=worker, in_quarantine=True).run()
    else:
        Guardian(settings).run()

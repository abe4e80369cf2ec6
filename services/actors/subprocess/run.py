"""One agent at work, seen from the worker: its keeper, the pipes to it, and what has been heard from both."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from windlass.services.actors.succession.whereabouts import own_mark

ROOT = Path(__file__).parents[4]
# Isolated and without site-packages it starts in a few milliseconds, and nothing in its environment can bend it.
KEEPER = "import sys; sys.path.append(sys.argv[1]); from windlass.services.actors.subprocess.keeper import main; main()"
AT_ONCE = 65_536
SHORTEST_WAIT_SECONDS = 0.001

MOST_IN_A_PIPE = 64 * AT_ONCE
"""More than Linux lets a pipe hold."""

A_LITTLE = AT_ONCE // 4
QUICKLY_SECONDS = 0.02
REST_SECONDS = 0.01
"""Where a little comes quickly after a little, the pipes are left alone for so long and then read once: to be woken
for each line costs many times what the line does. It is reported a few times a second, so nobody sees it later."""


class Peer(Protocol):
    """Somebody to speak with beside the pipes."""

    @property
    def is_open(self) -> bool: ...
    def interests(self) -> dict[int, int]:
        """What to wait for: events of `poll`, by descriptor."""

    def move(self) -> None:
        """Moves what can be moved, and waits for nothing."""


class Output(Protocol):
    """Takes what is printed."""

    def take_stdout(self, chunk: bytes) -> None: ...
    def take_stderr(self, chunk: bytes) -> None: ...
    def finish(self) -> None:
        """Nothing more will come."""


@dataclass(frozen=True)
class Order:
    """What the keeper starts, and under which limits."""

    command: tuple[str, ...]
    environment: dict[str, str]
    directory: str
    limits: dict[str, tuple[int, int]]
    """The kernel's, of each process."""
    watch: dict[str, int | str | None]
    """The watcher's, of all together."""
    owner: tuple[int, int] | None
    """User and group whose process the agent is, if they are not the worker's."""
    run_as: tuple[int, int] | None
    """The same where the keeper has to see to it; a sandbox does so itself."""
    is_sandboxed: bool = False
    """Then the command reads its filter of system calls from the descriptor `FILTER_FD`."""
    way_out: str | None = None
    """The slirp4netns by which its network leads outside."""
    handed_over: int | None = None
    """A descriptor that it is to have, beside the pipes, under the same number."""

    def as_line(self) -> bytes:
        return json.dumps(vars(self)).encode() + b"\n"


class Run:
    """Nothing here blocks: `pump` moves what can be moved, and waits at most as long as it is told."""

    def __init__(self, order: Order, stdin: bytes, output: Output, peer: Peer | None = None) -> None:
        self._output = output
        self._peer = peer
        self._unwritten = memoryview(stdin)
        self._news = b""
        self._read_at = 0.0
        self._rests_until = 0.0
        self._may_rest = True
        self.agent_pid: int | None = None
        self.status: int | None = None
        self.largest_kb = 0
        self.largest_data_bytes = 0
        self.exceeded: str | None = None
        self.signals: list[dict[str, Any]] = []
        self.failure: str | None = None
        self.none_left = False
        self.keeper_is_gone = False
        self._control, theirs = socket.socketpair()
        try:
            self.keeper = _start_keeper(theirs.fileno(), order.handed_over)
        except BaseException:
            self._control.close()
            raise
        finally:
            theirs.close()
        assert self.keeper.stdin
        assert self.keeper.stdout
        assert self.keeper.stderr
        self._open = {pipe.fileno(): pipe for pipe in (self.keeper.stdin, self.keeper.stdout, self.keeper.stderr)}
        self._stdin, self._stdout, self._stderr = self._open
        for descriptor in self._open:
            os.set_blocking(descriptor, False)
        with suppress(BrokenPipeError):  # a keeper that is gone already is noticed when it is listened to
            self._control.sendall(order.as_line())
        os.set_blocking(self._control.fileno(), False)

    @property
    def has_ended(self) -> bool:
        """Whether the agent itself has; what it started may live on."""
        return self.status is not None or self.failure is not None or self.keeper_is_gone

    def pump(self, seconds: float) -> bool:
        """Waits for something to be moved, but no longer than that, and moves it; whether there was anything."""
        poll = select.poll()
        rest = self._rests_until - time.monotonic()
        if rest > 0:
            seconds = min(seconds, rest)
        for descriptor in self._open:
            if descriptor == self._stdin:
                poll.register(descriptor, select.POLLOUT)
            elif rest <= 0:
                poll.register(descriptor, select.POLLIN)
        if not self.keeper_is_gone:
            poll.register(self._control, select.POLLIN)
        for descriptor, events in self._peer.interests().items() if self._peer else ():
            poll.register(descriptor, events)
        ready = poll.poll(max(seconds, SHORTEST_WAIT_SECONDS) * 1000)
        for descriptor, _event in ready:
            self._move(descriptor)
        return bool(ready)

    def _move(self, descriptor: int) -> None:
        if descriptor == self._control.fileno():
            self._listen()
        elif descriptor == self._stdin:
            self._write()
        elif descriptor in self._open:
            self._read(descriptor)
        elif self._peer is not None:
            self._peer.move()

    def drain(self, *, until: float) -> None:
        """Reads what is still in the pipes: nobody is left who could add to it. Also when the time is over before we
        get our turn, what they hold is read."""
        self._shut(self._stdin)
        self._may_rest, self._rests_until = False, 0.0
        looks = 0
        while self._open or (self._peer and self._peer.is_open):
            found, looks = self.pump(0), looks + 1
            if time.monotonic() >= until and (not found or looks * AT_ONCE >= MOST_IN_A_PIPE):
                break
        self._output.finish()

    def close(self) -> None:
        """The keeper has said its last word or is gone; it is waited for either way."""
        if not self.none_left:
            self.keeper.kill()
        self.keeper.wait()
        for descriptor in list(self._open):
            self._shut(descriptor)
        self._control.close()

    def _write(self) -> None:
        try:
            self._unwritten = self._unwritten[os.write(self._stdin, self._unwritten[:AT_ONCE]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._unwritten = memoryview(b"")  # it does not want to read
        if not self._unwritten:
            self._shut(self._stdin)

    def _read(self, descriptor: int) -> None:
        try:
            chunk = os.read(descriptor, AT_ONCE)
        except BlockingIOError:
            return
        self._rest_after(chunk)
        if not chunk:
            self._shut(descriptor)
        elif descriptor == self._stdout:
            self._output.take_stdout(chunk)
        else:
            self._output.take_stderr(chunk)

    def _rest_after(self, chunk: bytes) -> None:
        """A flood is read without a rest: the pipe is soon full, and its writer would have to wait."""
        now = time.monotonic()
        if self._may_rest and len(chunk) < A_LITTLE and now - self._read_at < QUICKLY_SECONDS:
            self._rests_until = now + REST_SECONDS
        self._read_at = now

    def _shut(self, descriptor: int) -> None:
        if pipe := self._open.pop(descriptor, None):
            with suppress(BrokenPipeError):
                pipe.close()

    def _listen(self) -> None:
        try:
            chunk = self._control.recv(AT_ONCE)
        except BlockingIOError:
            return
        except ConnectionError:
            chunk = b""
        if not chunk:
            # Its socket is closed a moment before its orphans fall to somebody else: wait for its end itself.
            self.keeper.send_signal(signal.SIGKILL)
            self.keeper.wait()
            self.keeper_is_gone = True
            return
        *lines, self._news = (self._news + chunk).split(b"\n")
        for line in lines:
            self._hear(json.loads(line))

    def _hear(self, news: dict[str, Any]) -> None:
        self.agent_pid = news.get("agent", self.agent_pid)
        self.status = news.get("status", self.status)
        self.largest_kb = news.get("largest_kb", self.largest_kb)
        self.largest_data_bytes = news.get("largest_data_bytes", self.largest_data_bytes)
        self.exceeded = news.get("exceeded", self.exceeded)
        self.signals = news.get("signals", self.signals)
        self.failure = news.get("failed", self.failure)
        self.none_left = news.get("none_left", self.none_left)


def _start_keeper(control: int, handed_over: int | None) -> subprocess.Popen[bytes]:
    """It dies with the thread that starts it, which is the attempt's own and lives as long as the worker."""
    command = [sys.executable, "-I", "-S", "-c", KEEPER, str(ROOT), str(control), str(os.getpid())]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        bufsize=0,
        pass_fds=[control] if handed_over is None else [control, handed_over],
        start_new_session=True,
        cwd="/",
        env=own_mark(),
    )

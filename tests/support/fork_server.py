"""Services as forks of one process that has imported them all: what each start would import again is imported once."""

# As a program (`python -m tests.support.fork_server DESCRIPTOR`) this is that process. It has no threads, runs nothing
# of what it imports, and ends when the test run does: the kernel then closes the other end of its socket.
import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

PROJECT: Final = Path(__file__).parents[2]
FORKED: Final = tuple(
    f"windlass.services.{service}"
    for service in ("api", "dispatcher", "orchestrator", "actors", "janitor", "fake_providers")
)
LONGEST_ORDER: Final = 1 << 20
PR_SET_PDEATHSIG: Final = 1


class ForkedProcess:
    """As `subprocess.Popen` holds a child of its own. It stays a zombie until it is waited for, so nobody else can have
    its number."""

    def __init__(self, server: "ForkServer", pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._server = server
        self._descriptor = os.pidfd_open(pid)
        self._waiting = threading.Lock()

    def poll(self) -> int | None:
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._look(None if timeout is None else timeout * 1000)
        if code is None:
            raise subprocess.TimeoutExpired(f"the fork {self.pid}", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _look(self, milliseconds: float | None) -> int | None:
        with self._waiting:
            if self.returncode is None:
                ended = select.poll()
                ended.register(self._descriptor, select.POLLIN)
                if ended.poll(milliseconds):
                    self.returncode = self._server.collect(self.pid)
                    os.close(self._descriptor)
            return self.returncode


class ForkServer:
    """The process, as the tests hold it, from any thread."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._asking = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.fork_server", str(theirs.fileno())],
                cwd=PROJECT,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self, module: str, environment: Mapping[str, str], stderr: int) -> ForkedProcess:
        """As `python -m` does it, with our own standard output."""
        return ForkedProcess(self, self._ask({"module": module, "environment": dict(environment)}, 1, stderr))

    def collect(self, pid: int) -> int:
        return self._ask({"collect": pid})

    def end(self) -> None:
        self._socket.close()
        self._process.wait()

    def _ask(self, order: dict[str, Any], *descriptors: int) -> int:
        with self._asking:
            socket.send_fds(self._socket, [json.dumps(order).encode()], descriptors)
            answer = self._socket.recv(LONGEST_ORDER)
        assert answer, "the fork server has died"
        return int(answer)


@cache
def fork_server() -> ForkServer:
    """The test process's only one, from the first start on."""
    return ForkServer()


def end() -> None:
    if fork_server.cache_info().currsize:
        fork_server().end()
        fork_server.cache_clear()


def can_start(module: str, environment: Mapping[str, str]) -> bool:
    """Not what has a Python of its own: that reads these variables before it imports anything."""
    return module in FORKED and _of_python(environment) == _of_python(os.environ)


def _of_python(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith("PYTHON")}


def serve(orders: socket.socket) -> dict[str, Any] | None:
    """Returns in each fork, with what it is to become; here when nobody asks any more."""
    while True:
        order, descriptors, _, _ = socket.recv_fds(orders, LONGEST_ORDER, 2)
        if not order:
            return None
        wish = json.loads(order)
        if "collect" in wish:
            _, status = os.waitpid(wish["collect"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            server = os.getpid()
            answer = os.fork()
            if answer == 0:
                cannot_outlive(server)
                os.dup2(descriptors[0], 1)
                os.dup2(descriptors[1], 2)
                return dict(wish)
            for descriptor in descriptors:
                os.close(descriptor)
        orders.send(str(answer).encode())


def cannot_outlive(parent: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    # A parent that died before the line above sends no signal any more.
    if os.getppid() != parent:
        sys.exit("the process that forked this one is gone")


def become(module: str, environment: dict[str, str]) -> None:
    """Nothing of the server is left: neither its descriptors nor its environment nor its deafness to Ctrl-C."""
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environment)
    sys.modules.pop(f"{module}.__main__")  # imported for what it imports: from here on it runs
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def main() -> None:
    # Ctrl-C is for pytest, which takes everything down in order and needs us for that.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.argv, descriptor = sys.argv[:1], int(sys.argv[1])
    for module in FORKED:
        importlib.import_module(f"{module}.__main__")
    gc.freeze()  # a fork that looked through all of this for garbage would copy it
    orders = socket.socket(fileno=descriptor)
    if (wish := serve(orders)) is not None:
        orders.detach()
        become(**wish)


if __name__ == "__main__":
    main()

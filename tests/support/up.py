"""A `windlass up` of a test's own."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import httpx

from tests.support.waiting import wait_until
from windlass.services.laptop.supervision.children import LEASH
from windlass.shared.process.procfs import ProcessIdentity, descendants

WINDLASS = Path(sys.executable).with_name("windlass")
READY = re.compile(r"windlass ready (http://127\.0\.0\.1:\d+) key=(wl_[0-9A-Za-z]+_[0-9A-Za-z]+)")
START_SECONDS = 180
STOP_SECONDS = 120


class WindlassUp:
    """One data directory, and the supervisor that runs on it at the moment."""

    def __init__(self, directory: Path, *command: str, cwd: Path | None = None) -> None:
        self.directory = directory
        self._command = command or (str(WINDLASS), "up")
        self._cwd = cwd
        self._environment = {
            **os.environ,
            "WINDLASS_DATA_DIR": str(directory),
            "WINDLASS_PORT": "0",
        }
        self._output = directory.with_name(f"{directory.name}.out")
        self._log = directory.with_name(f"{directory.name}.log")
        self._process: subprocess.Popen[bytes] | None = None
        self._arguments: tuple[str, ...] = ()

    def with_arguments(self, *arguments: str) -> Self:
        self._arguments = arguments
        return self

    def in_environment(self, variables: Mapping[str, str]) -> Self:
        """Instead of the tests' own."""
        ours = {name: value for name, value in self._environment.items() if name.startswith("WINDLASS_")}
        self._environment = {**variables, **ours}
        return self

    def with_settings(self, **settings: str) -> Self:
        self._environment |= settings
        return self

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    @property
    def output(self) -> str:
        return self._output.read_text(errors="replace")

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def begin(self, output: int | None = None) -> None:
        """Starts it without waiting; it dies with the test run, even when that is killed."""
        leash = [sys.executable, "-I", "-S", str(LEASH), str(os.getpid()), str(int(signal.SIGTERM)), "-"]
        with self._output.open("wb") as stdout, self._log.open("wb") as stderr:
            self._process = subprocess.Popen(
                [*leash, *self._command, *self._arguments],
                cwd=self._cwd,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=stdout if output is None else output,
                stderr=stderr if output is None else output,
                start_new_session=True,
            )

    def start(self) -> None:
        self.begin()
        wait_until("ready", lambda: READY.search(self.output) or not self.is_running, seconds=START_SECONDS)
        assert READY.search(self.output), self.log

    def client(self) -> httpx.Client:
        """Speaks to its api as the administrator."""
        ready = READY.search(self.output)
        assert ready
        headers = {"Authorization": f"Bearer {ready[2]}"}
        return httpx.Client(base_url=ready[1], headers=headers, timeout=60, trust_env=False)

    def run_file(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.directory / "run.json").read_text())
        return content

    def pid_of(self, name: str) -> int:
        """A service's or a server's process number, as run.json has it now."""
        entry = self.run_file()[name]
        pid = entry[0]["pid"] if isinstance(entry, list) else entry["pid"]
        assert isinstance(pid, int)
        return pid

    def everyone(self) -> list[ProcessIdentity]:
        """The supervisor and all processes below it."""
        own = ProcessIdentity.of(self.pid)
        assert own
        return [own, *descendants(self.pid)]

    def wait(self) -> int:
        assert self._process
        return self._process.wait(STOP_SECONDS)

    def has_ended_after_another_interrupt(self) -> bool:
        """Ctrl-C, as an impatient hand gives it again and again."""
        if self.is_running:
            os.kill(self.pid, signal.SIGINT)
        return not self.is_running

    def make_sure_that_it_has_stopped(self) -> None:
        if self.is_running:
            self.stop()

    def stop(self, signum: signal.Signals = signal.SIGINT) -> int:
        os.kill(self.pid, signum)
        return self.wait()


def still_running(processes: list[ProcessIdentity]) -> list[ProcessIdentity]:
    return [process for process in processes if process.is_running()]

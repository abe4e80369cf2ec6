"""A process of the tests' own that is told one line at a time and answers each with a line."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.servers.private_servers import PROJECT

STOP_SECONDS = 120


class HelperProcess:
    """As whoever started it holds it, from any thread."""

    def __init__(self, module: str, process: "subprocess.Popen[str]") -> None:
        self._module = module
        self._process = process
        self._talking = threading.Lock()

    def tell(self, order: str) -> str:
        """Returns the answer."""
        with self._talking:
            assert self._process.stdin
            self._process.stdin.write(f"{order}\n")
            self._process.stdin.flush()
            return self.answer()

    def answer(self) -> str:
        """The next line, also of one that speaks first."""
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, f"{self._module} has died"
        return line.strip()


@contextmanager
def helper_process(module: str, *arguments: str | Path) -> Iterator[HelperProcess]:
    """Runs a module that ends when its standard input does, which the kernel closes with the test run.

    In a session of its own: a Ctrl-C on the terminal is for pytest, which then takes it down.
    """
    with subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield HelperProcess(module, process)
        finally:
            assert process.stdin
            process.stdin.close()
            process.wait(STOP_SECONDS)

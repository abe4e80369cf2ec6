"""A command in a terminal of its own, as a person at a keyboard has it."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.support.waiting import wait_until

ROWS, COLUMNS = 40, 120
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal:
    """Starts the command; what it shows is gathered until it ends."""

    def __init__(
        self, command: Sequence[str | Path], environment: Mapping[str, str], *, columns: int = COLUMNS
    ) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
        self._shown = b""
        self.process = subprocess.Popen(
            # So that Ctrl-C becomes its signal, also when whoever runs the tests ignores it.
            ["env", "--default-signal=INT", "setsid", "--ctty", *command],
            env={**_without_a_size(environment), "TERM": "xterm"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        os.close(self._ours)

    @property
    def text(self) -> str:
        """What was shown so far, without colours and movements."""
        return ESCAPES.sub("", self._shown.decode(errors="replace"))

    @property
    def raw(self) -> bytes:
        return self._shown

    def wait_for(self, words: str, *, seconds: float = 60) -> None:
        wait_until(f"{words!r} on the terminal", lambda: words in self.text, seconds=seconds)

    def press(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def end(self) -> int:
        code = self.process.wait(60)
        self._reader.join()
        return code

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # EIO: the last one who had the terminal open has closed it
            while piece := os.read(self._ours, 65536):
                self._shown += piece


def _without_a_size(environment: Mapping[str, str]) -> dict[str, str]:
    """The size of the terminal that the tests were started in would count instead of this one's."""
    return {name: value for name, value in environment.items() if name not in {"COLUMNS", "LINES"}}

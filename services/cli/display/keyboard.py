"""Single keys from a terminal, without waiting for the line's end."""

import os
import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def single_keys() -> Iterator[None]:
    """As it was before, when it is over; Ctrl-C stays a signal."""
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def pressed(seconds: float) -> str:
    """What was pressed within the time, if anything; the end of the keyboard is as `q`."""
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    if not ready:
        return ""
    return os.read(sys.stdin.fileno(), 64).decode(errors="replace") or "q"

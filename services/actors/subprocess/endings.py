"""How a process ended, as a shell says it and in words."""

import os
import signal
from contextlib import suppress

SIGNALLED = 128
SAID_IN_MESSAGE = 500


def exit_code_of(status: int) -> int:
    """128 and its number for a signal."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else SIGNALLED - code


def signal_name_of(exit_code: int) -> str | None:
    with suppress(ValueError):
        return signal.Signals(exit_code - SIGNALLED).name
    return None


def with_last_words(message: str, stderr: str) -> str:
    said = stderr.strip()[-SAID_IN_MESSAGE:].strip()
    return f"{message}: {said}" if said else message

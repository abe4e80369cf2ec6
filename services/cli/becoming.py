"""Replaces the command's process by one of Windlass' own."""

import os
import sys


def become(module: str, *arguments: str) -> int:
    os.execv(sys.executable, [sys.executable, "-m", module, *arguments])  # noqa: S606 - no shell is needed

"""The life of a process: it works until it is told to stop."""

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any


async def until_told_to_stop(work: Coroutine[Any, Any, None]) -> None:
    """SIGTERM and Ctrl-C cancel the work; an error of its own ends the process, and whoever supervises it knows."""
    running = asyncio.ensure_future(work)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    with suppress(asyncio.CancelledError):
        await running
